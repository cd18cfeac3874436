"""Constants: the reader decodes every element type like OpenVINO."""

from __future__ import annotations

import tracemalloc

import numpy as np
import openvino as ov
import pytest

from converters.errors import MalformedError
from converters.openvino.reader.element_types import ElementType
from converters.openvino.reader.read import read

from . import ir_text

NUMBERS = [t for t in ElementType if t not in (ElementType.STRING, ElementType.DYNAMIC)]
PACKED = [t for t in NUMBERS if t.is_packed]
WHOLE = [t for t in NUMBERS if not t.is_packed]


def convert_to(target, element_type, count, size):
    """Return an IR with a constant, a Convert and a Result."""
    data = f'destination_type="{target}"'
    layers = [
        ir_text.const(0, element_type, (count,), size, precision=element_type),
        ir_text.layer(1, "Convert", inputs=[(count,)], outputs=[(count,)], data=data, precision=target),
        ir_text.result(2, (count,)),
    ]
    return ir_text.net(layers, [ir_text.edge(0, 0, 1, 0), ir_text.edge(1, 1, 2, 0)])


def all_bytes(element_type):
    """Return bytes with every code of up to 8 bits at every position, or random ones for wider types."""
    generator = np.random.default_rng(element_type.bits)
    data = generator.integers(0, 256, 3 * 1024, dtype=np.uint8)
    data[:768] = np.tile(np.arange(256, dtype=np.uint8), 3)
    return (data % 2 if element_type is ElementType.BOOLEAN else data).tobytes()


def evaluate(path, target):
    model = ov.Core().read_model(path)
    output = ov.Tensor(getattr(ov.Type, target), model.output(0).shape)
    assert model.evaluate([output], [])
    return output.data


@pytest.mark.parametrize("element_type", NUMBERS, ids=str)
def test_values_equal_openvino(tmp_path, element_type):
    data = all_bytes(element_type)
    count = len(data) * 8 // element_type.bits
    target = "f64" if element_type is ElementType.F64 else "f32"
    if element_type.is_integer:
        target = "u64" if element_type is ElementType.U64 else "i64"
    path = ir_text.write(tmp_path, convert_to(target, element_type, count, len(data)), data)
    constant = read(path).layers[0].constant
    array = constant.numpy()
    assert (array.dtype, array.shape) == (element_type.dtype, (count,))
    with np.errstate(all="ignore"):
        found = array.astype({"f32": np.float32, "f64": np.float64, "i64": np.int64, "u64": np.uint64}[target])
    np.testing.assert_array_equal(found, evaluate(path, target))
    if element_type.is_floating:
        np.testing.assert_array_equal(np.signbit(found), np.signbit(evaluate(path, target)))


@pytest.mark.parametrize("element_type", PACKED, ids=str)
@pytest.mark.parametrize("count", [1, 2, 3, 5, 7, 8, 9, 11, 16, 17])
def test_packed_types_with_a_partial_last_byte(tmp_path, element_type, count):
    size = element_type.byte_size(count)
    data = all_bytes(element_type)[100 : 100 + size]
    path = ir_text.write(tmp_path, convert_to("f32", element_type, count, size), data)
    constant = read(path).layers[0].constant
    np.testing.assert_array_equal(constant.numpy().astype(np.float32), evaluate(path, "f32"))
    assert constant.codes().shape == (count,) and constant.codes().max() < 1 << element_type.bits
    assert bytes(constant.raw) == data


@pytest.mark.parametrize("element_type", WHOLE, ids=str)
def test_whole_bytes_are_not_copied(tmp_path, element_type):
    size = element_type.bits // 8
    layers = [ir_text.const(0, element_type, (3, 2), 6 * size, offset=1), ir_text.result(1, (3, 2))]
    path = ir_text.write(tmp_path, ir_text.net(layers, [ir_text.edge(0, 0, 1, 0)]), bytes(6 * size + 1))
    model = read(path)
    array = model.layers[0].constant.numpy()
    assert array.ctypes.data == np.frombuffer(model.weights, np.uint8).ctypes.data + 1
    assert array.shape == (3, 2) and not array.flags.writeable


def test_any_byte_but_0_is_true(tmp_path):
    path = ir_text.write(tmp_path, convert_to("f32", ElementType.BOOLEAN, 4, 4), bytes([0, 1, 2, 255]))
    array = read(path).layers[0].constant.numpy()
    assert array.tolist() == [False, True, True, True]
    assert array.view(np.uint8).tolist() == [0, 1, 1, 1]
    assert not array.flags.writeable


@pytest.mark.parametrize("element_type", ["i4", "u1", "f32", "nf4"])
def test_constants_without_elements(tmp_path, element_type):
    """OpenVINO writes them with a size of 1."""
    for shape, size in [((0,), 0), ((0,), 1), ((3, 0, 2), 1)]:
        layers = [ir_text.const(0, element_type, shape, size), ir_text.result(1, shape)]
        path = ir_text.write(tmp_path, ir_text.net(layers, [ir_text.edge(0, 0, 1, 0)]), b"\0")
        constant = read(path).layers[0].constant
        assert constant.numpy().shape == shape and constant.size == len(constant.raw) == 0
    path.with_suffix(".bin").unlink()
    assert read(path).weights_path is None


@pytest.mark.parametrize(
    "strings",
    [
        np.array(["emerson", "lake", "palmer"]),
        np.array([["a", ""], ["été", "日本\n\0語"], ["", "🎹"]]),
        np.array([b"\xff\xfe", b"\x00", b""]),
        np.array("scalar").reshape(()),
        np.zeros((0, 2), "U1"),
    ],
    ids=["words", "unicode", "bytes", "scalar", "none"],
)
def test_strings(tmp_path, strings):
    tensor = ov.Tensor(ov.Type.string, ov.Shape(strings.shape))
    if strings.size:
        tensor.bytes_data = strings
    constant = ov.op.Constant(tensor)
    model = ov.Model([ov.opset15.result(constant)], [], "strings")
    ov.save_model(model, tmp_path / "model.xml")
    array = next(x for x in read(tmp_path / "model.xml").layers if x.type == "Const").constant.numpy()
    expected = [x if isinstance(x, bytes) else x.encode() for x in strings.ravel().tolist()]
    assert array.ravel().tolist() == expected
    assert (array.dtype, array.shape) == (np.dtype(object), strings.shape)


def string_ir(tmp_path, data, shape=(2,)):
    layers = [ir_text.const(0, "string", shape, len(data), precision="STRING"), ir_text.result(1, shape)]
    return ir_text.write(tmp_path, ir_text.net(layers, [ir_text.edge(0, 0, 1, 0)]), data)


def int32(*values):
    return np.array(values, "<i4").tobytes()


@pytest.mark.parametrize(
    "data",
    [
        b"abc",
        int32(2),
        int32(2, 0, 1),
        int32(1, 0, 1) + b"a",
        int32(3, 0, 1, 1, 1) + b"a",
        int32(-1, 0, 1, 1) + b"a",
        int32(2, 1, 1, 1) + b"a",
        int32(2, 0, 1, 0) + b"a",
        int32(2, 0, -1, 1) + b"a",
        int32(2, 0, 1, 2) + b"a",
        int32(2, 0, 1, 2**31 - 1) + b"a",
    ],
)
def test_damaged_strings_are_rejected(tmp_path, data):
    with pytest.raises(MalformedError, match=r"model.xml:4: layer \"Const_0\" \(Const, id 0\): "):
        read(string_ir(tmp_path, data))


def test_undamaged_strings_are_accepted(tmp_path):
    model = read(string_ir(tmp_path, int32(2, 0, 1, 3) + b"abc"))
    assert model.layers[0].constant.numpy().tolist() == [b"a", b"bc"]


def test_an_impossible_number_of_strings_allocates_no_memory(tmp_path):
    path = string_ir(tmp_path, int32(2**31 - 1, 0, 0), shape=(2**31 - 1,))
    tracemalloc.start()
    with pytest.raises(MalformedError, match="Const_0"):
        read(path)
    assert tracemalloc.get_traced_memory()[1] < 1 << 22
    tracemalloc.stop()


@pytest.mark.parametrize("element_type", ElementType, ids=str)
def test_element_types_equal_openvino(element_type):
    oracle = getattr(ov.Type, element_type.value)
    assert oracle.to_string() == str(element_type)
    assert ElementType.from_name(element_type.value) is element_type
    assert ElementType(element_type.value) is element_type
    if element_type not in (ElementType.STRING, ElementType.DYNAMIC):
        assert oracle.bitwidth == element_type.bits
        if element_type is ElementType.NF4:  # OpenVINO reports it as neither real nor signed, but integral
            return
        assert oracle.is_real() == element_type.is_floating
        assert oracle.is_integral() == (element_type.is_integer or element_type is ElementType.BOOLEAN)
        signed = element_type.is_signed or element_type in (ElementType.BOOLEAN, ElementType.F8E8M0)
        assert oracle.is_signed() == signed


def test_the_spelling_of_ports_is_accepted(tmp_path):
    for element_type in ElementType:
        parameter = ov.opset15.parameter([2], getattr(ov.Type, element_type.value))
        path = tmp_path / "model.xml"
        ov.save_model(ov.Model([ov.opset15.result(parameter)], [parameter]), path, compress_to_fp16=False)
        port = read(path).parameters[0].outputs[0]
        assert port.element_type is element_type
        assert ElementType.from_name(port.precision) is element_type
    assert ElementType.from_name("FP31") is None
    assert ElementType.from_name("") is None


def test_only_narrow_types_have_codes(tmp_path):
    layers = [ir_text.const(0, "f32", (1,), 4), ir_text.result(1, (1,))]
    path = ir_text.write(tmp_path, ir_text.net(layers, [ir_text.edge(0, 0, 1, 0)]), bytes(4))
    with pytest.raises(ValueError, match="f32 elements have no codes"):
        read(path).layers[0].constant.codes()
