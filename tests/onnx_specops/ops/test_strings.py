"""StringTensorUnpack and StringTensorPack."""

from __future__ import annotations

import re

import numpy as np
import pytest

from tests.onnx_specops.ops.one_node import KERNELS, RAISED, run, strings

TEXTS = [
    strings([["ab", ""], ["é", "z"]]),
    strings("scalar"),
    strings(["日本語", "🦆", "a\tb", " ", "x" * 1000, ""]),
    strings([[["a"], ["bc"]]]),
]


@pytest.mark.parametrize("form", KERNELS)
def test_unpack(form):
    begins, ends, symbols = run(form, "StringTensorUnpack", {"data": TEXTS[0]})
    assert (begins.dtype, ends.dtype, symbols.dtype) == (np.int32, np.int32, np.uint8)
    assert begins.tolist() == [[0, 2], [2, 4]]
    assert ends.tolist() == [[2, 2], [4, 5]]
    assert symbols.tolist() == [97, 98, 195, 169, 122]


@pytest.mark.parametrize("form", ["numpy", "native"])
def test_unpack_any_bytes(form):
    data = strings([b"\xff\xfe", b"", b"\0"])
    begins, ends, symbols = run(form, "StringTensorUnpack", {"data": data}, constants=["data"])
    assert (begins.tolist(), ends.tolist(), symbols.tolist()) == ([0, 2, 2], [2, 2, 3], [255, 254, 0])


@pytest.mark.parametrize("form", KERNELS)
@pytest.mark.parametrize("shape", [(0,), (2, 0)])
def test_unpack_empty(form, shape):
    begins, ends, symbols = run(form, "StringTensorUnpack", {"data": np.empty(shape, object)})
    assert (begins.shape, ends.shape, symbols.shape) == (shape, shape, (0,))


@pytest.mark.parametrize("form", KERNELS)
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_pack(form, dtype):
    inputs = {
        "begins": np.array([[0, 1], [2, 5]], dtype),
        "ends": np.array([[2, 4], [2, 5]], dtype),
        "symbols": np.frombuffer("abé!".encode(), np.uint8),
    }
    assert run(form, "StringTensorPack", inputs).tolist() == [["ab", "bé"], ["", ""]]


@pytest.mark.parametrize("form", KERNELS)
@pytest.mark.parametrize("shape", [(0,), (0, 3)])
def test_pack_empty(form, shape):
    empty = np.empty(shape, np.int32)
    output = run(form, "StringTensorPack", {"begins": empty, "ends": empty, "symbols": np.empty(0, np.uint8)})
    assert output.shape == shape


@pytest.mark.parametrize("form", KERNELS)
@pytest.mark.parametrize("data", TEXTS, ids=lambda data: str(data.shape))
def test_round_trip(form, data):
    begins, ends, symbols = run(form, "StringTensorUnpack", {"data": data})
    back = run(form, "StringTensorPack", {"begins": begins, "ends": ends, "symbols": symbols})
    assert back.shape == data.shape
    assert back.tolist() == data.tolist()


@pytest.mark.parametrize("form", ["numpy", "native"])
def test_round_trip_with_nul(form):
    data = strings(["a\0b", "\0", "", "\0\0"])
    begins, ends, symbols = run(form, "StringTensorUnpack", {"data": data})
    assert ends.tolist() == [3, 4, 4, 6]
    back = run(form, "StringTensorPack", {"begins": begins, "ends": ends, "symbols": symbols})
    assert back.tolist() == data.tolist()


@pytest.mark.parametrize("constants", [["data"], []], ids=["constant", "fed"])
def test_python_kernels_reject_nul(constants):
    """onnxruntime-extensions would truncate the string."""
    with pytest.raises(ValueError, match="contains a NUL"):
        run("python", "StringTensorUnpack", {"data": strings(["a\0b"])}, constants=constants)


def test_python_kernels_do_not_output_nul():
    offsets = np.array([0, 2], np.int32)
    inputs = {"begins": offsets[:1], "ends": offsets[1:], "symbols": np.array([97, 0], np.uint8)}
    with pytest.raises(ValueError, match="contains a NUL"):
        run("python", "StringTensorPack", inputs)


@pytest.mark.parametrize("form", KERNELS)
@pytest.mark.parametrize(
    "begins, ends, message",
    [
        ([0, -1], [1, 2], "StringTensorPack: begins[1] = -1 is out of range [0, 3]"),
        ([0, 1], [1, 4], "StringTensorPack: ends[1] = 4 is out of range [0, 3]"),
        ([0, 4], [1, 4], "StringTensorPack: begins[1] = 4 is out of range [0, 3]"),
        ([0, 2], [1, 1], "StringTensorPack: begins[1] = 2 is greater than ends[1] = 1"),
        ([0, 2], [1], "StringTensorPack: ends has the shape [1]; expected that of begins, [2]"),
    ],
)
def test_pack_errors(form, begins, ends, message):
    inputs = {
        "begins": np.array(begins, np.int64),
        "ends": np.array(ends, np.int64),
        "symbols": np.arange(3, dtype=np.uint8),
    }
    with pytest.raises(RAISED[form], match=re.escape(message)):
        run(form, "StringTensorPack", inputs)


def test_openvino_agrees():
    openvino = pytest.importorskip("openvino")
    opset = pytest.importorskip("openvino.opset15")
    data = TEXTS[2].reshape(2, 3)
    parameter = opset.parameter([-1, -1], openvino.Type.string)
    unpack = opset.string_tensor_unpack(parameter)
    compiled = openvino.compile_model(openvino.Model(unpack.outputs(), [parameter]), "CPU")
    result = compiled(np.array(data.tolist()))
    for ours, output in zip(run("numpy", "StringTensorUnpack", {"data": data}), compiled.outputs, strict=True):
        np.testing.assert_array_equal(ours, result[output])
