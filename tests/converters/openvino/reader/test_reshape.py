"""Models whose inputs a user reshapes, compared with OpenVINO's ``Model.reshape``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import openvino as ov
import pytest
from openvino import opset13 as ops

import onnx_specops
from converters.openvino import ConversionError, convert
from converters.openvino.runtime.inference import EXACT

UNKNOWN = [-1, -1, -1, -1]
FIXED = [2, 3, 5, 7]


def _compare(path: Path, model: ov.Model, array: np.ndarray, dims: Sequence[int]) -> None:
    """Compare a model of the input x with OpenVINO after both reshape it."""
    ov.save_model(model, path, compress_to_fp16=False)
    expected = ov.Core().read_model(path)
    expected.reshape(list(dims))
    results = ov.Core().compile_model(expected, "CPU", dict(EXACT))(array)
    convert(path, path.with_suffix(".onnx"), input_shapes={"x": dims})
    found = onnx_specops.InferenceSession(path.with_suffix(".onnx")).run(None, {"x": array})
    for one, other in zip(found, results.values(), strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-3)


@pytest.mark.parametrize("stated", [FIXED, UNKNOWN, [-1, 3, 5, 7], [2, 3, -1, -1]])
@pytest.mark.parametrize("dims", [FIXED, UNKNOWN, [-1, 3, 5, 7], [2, 3, -1, -1]])
@pytest.mark.parametrize("by", ["sizes", "scales"])
def test_resized_bytes_are_rounded_if_all_dimensions_are_known(
    tmp_path: Path, stated: list[int], dims: list[int], by: str
) -> None:
    """OpenVINO fuses the Convert of an image of unknown dimensions, whose numbers it does not round then."""
    x = ops.parameter(stated, np.uint8, name="x")
    given = np.array([8, 9]) if by == "sizes" else np.float32([1.6, 1.3])
    image = ops.interpolate(x, ops.constant(given), "cubic", by, axes=ops.constant(np.array([2, 3])))
    y = ops.relu(ops.multiply(ops.convert(image, "f32"), ops.constant(np.float32(0.25))))
    array = np.random.default_rng(0).integers(0, 255, FIXED).astype(np.uint8)
    _compare(tmp_path / "model.xml", ov.Model([y], [x]), array, dims)


@pytest.mark.parametrize("counter", [[], [1]])
def test_the_counter_of_a_loop_keeps_its_rank(tmp_path: Path, counter: list[int]) -> None:
    x, so_far = ops.parameter([-1, 2], np.float32, name="x"), ops.parameter([-1, 2], np.float32)
    index = ops.parameter(counter, np.int64)
    following = ops.add(so_far, ops.convert(index, "f32"))
    goes_on = ops.constant(np.array(True))
    body = ov.Model([following, goes_on, index], [so_far, index])
    loop = ops.loop(ops.constant(np.int64(3)), ops.constant(np.array(True)))
    loop.set_function(body)
    loop.set_special_body_ports([1, 1])
    loop.set_merged_input(so_far, x.output(0), body.get_results()[0].output(0))
    results = [loop.get_iter_value(body.get_results()[k].output(0), -1) for k in (0, 2)]
    _compare(tmp_path / "model.xml", ov.Model(results, [x]), np.ones((3, 2), np.float32), [3, 2])


IMAGE = [1, 4, 2, 2]


def _weights(*dims: int) -> ov.Node:
    return ops.constant(np.random.default_rng(1).normal(size=dims).astype(np.float32))


def _flat(x: ov.Node, *dims: int) -> ov.Node:
    return ops.reshape(x, ops.constant(np.array(dims)), False)


def _transposed(x: ov.Node) -> ov.Node:
    return ops.transpose(x, ops.constant(np.array([1, 0])))


FLATTENED = {
    "to one dimension": lambda x: ops.relu(_flat(x, 16)),
    "rows of the first operand": lambda x: ops.matmul(_flat(x, 1, 16), _weights(16, 3), False, False),
    "rows, by transposed weights": lambda x: ops.matmul(_flat(x, 1, 16), _weights(3, 16), False, True),
    "columns of the first operand": lambda x: ops.matmul(_flat(x, 16, 1), _weights(16, 3), True, False),
    "rows of the second operand": lambda x: ops.matmul(_weights(3, 16), _flat(x, 1, 16), False, True),
    "columns of the second operand": lambda x: ops.matmul(_weights(3, 16), _flat(x, 16, 1), False, False),
    "columns, transposed by a layer": lambda x: ops.matmul(_transposed(_flat(x, 16, 1)), _weights(16, 3), False, False),
    "rows, transposed twice": lambda x: ops.matmul(_transposed(_flat(x, 1, 16)), _weights(16, 3), True, False),
    "compressed weights": lambda x: ops.matmul(
        _flat(x, 1, 16), ops.convert(ops.constant(np.ones((16, 3), np.float16)), "f32"), False, False
    ),
}


@pytest.mark.parametrize("dims", [[2, 4, 2, 2], [-1, 4, 2, 2]])
@pytest.mark.parametrize("name", FLATTENED)
def test_constant_patterns_of_reshapes_follow_the_input(tmp_path: Path, name: str, dims: list[int]) -> None:
    x = ops.parameter(IMAGE, np.float32, name="x")
    array = np.random.default_rng(0).normal(size=[2, 4, 2, 2]).astype(np.float32)
    _compare(tmp_path / "model.xml", ov.Model([FLATTENED[name](x)], [x]), array, dims)


def _shared(x: ov.Node) -> ov.Node:
    flat = _flat(x, 1, 16)
    return ops.add(ops.matmul(flat, _weights(16, 3), False, False), ops.reduce_sum(ops.relu(flat), ops.constant(1), True))


FIXED_PATTERNS = {
    "two dimensions before another layer": lambda x: ops.relu(_flat(x, 1, 16)),
    "a layer before the MatMul": lambda x: ops.matmul(ops.relu(_flat(x, 1, 16)), _weights(16, 3), False, False),
    "another consumer": _shared,
    "three dimensions": lambda x: ops.matmul(_flat(x, 1, 4, 4), _weights(4, 3), False, False),
}


@pytest.mark.parametrize("name", FIXED_PATTERNS)
def test_other_patterns_are_fixed(tmp_path: Path, name: str) -> None:
    """OpenVINO rejects the new shape too. The remedy is another shape, since the file need not be damaged."""
    x = ops.parameter(IMAGE, np.float32, name="x")
    path = tmp_path / "model.xml"
    ov.save_model(ov.Model([FIXED_PATTERNS[name](x)], [x]), path, compress_to_fp16=False)
    with pytest.raises(RuntimeError, match="incompatible with input shape"):
        ov.Core().read_model(path).reshape([2, 4, 2, 2])
    with pytest.raises(ConversionError, match=r"Reshape.*cannot become.*; use an --input-shape that the model supports"):
        convert(path, input_shapes={"x": [2, 4, 2, 2]})


def test_a_pattern_that_another_layer_shares_keeps_its_value_there(tmp_path: Path) -> None:
    x, y = (ops.parameter([1, 4, 2, 2], np.float32, name=name) for name in "xy")
    pattern = ops.constant(np.array([1, 16]))
    product = ops.matmul(ops.reshape(x, pattern, False), _weights(16, 3), False, False)
    model = ov.Model([product, ops.relu(ops.reshape(y, pattern, False))], [x, y])
    path = tmp_path / "model.xml"
    ov.save_model(model, path, compress_to_fp16=False)
    expected = ov.Core().read_model(path)
    expected.reshape({"x": [2, 4, 2, 2]})
    arrays = {
        name: np.random.default_rng(0).normal(size=[n, 4, 2, 2]).astype(np.float32) for name, n in {"x": 2, "y": 1}.items()
    }
    results = ov.Core().compile_model(expected, "CPU", dict(EXACT))(arrays)
    convert(path, path.with_suffix(".onnx"), input_shapes={"x": [2, 4, 2, 2]})
    found = onnx_specops.InferenceSession(path.with_suffix(".onnx")).run(None, arrays)
    for one, other in zip(found, results.values(), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)


def test_patterns_of_the_same_shape_are_kept_apart(tmp_path: Path) -> None:
    """Patterns that the converter replaces have no place in the .bin that distinguishes them."""
    x = ops.parameter(IMAGE, np.float32, name="x")
    products = [
        ops.matmul(_flat(x, 1, 16), _weights(16, 3), False, False),
        ops.matmul(_flat(x, 16, 1), _weights(16, 3), True, False),
        ops.matmul(_flat(x, 4, 4), _weights(4, 3), False, False),
    ]
    array = np.random.default_rng(0).normal(size=[2, 4, 2, 2]).astype(np.float32)
    _compare(tmp_path / "model.xml", ov.Model(products, [x]), array, [2, 4, 2, 2])


def _cell(states: Sequence[ov.Node], x: ov.Node) -> ov.Node:
    weights = (_weights(8, 3), _weights(8, 2), ops.constant(np.linspace(-1, 1, 8, dtype=np.float32)))
    return ops.lstm_cell(x, *states, *weights, 2)


@pytest.mark.parametrize("dims", [[5, 3], [-1, 3]])
def test_constant_states_of_a_cell_are_repeated(tmp_path: Path, dims: list[int]) -> None:
    x = ops.parameter([1, 3], np.float32, name="x")
    states = [ops.constant(np.array([row], np.float32)) for row in ([0.5, -1], [2, 0.25])]
    array = np.random.default_rng(0).normal(size=[5, 3]).astype(np.float32)
    _compare(tmp_path / "model.xml", ov.Model(_cell(states, x).outputs(), [x]), array, dims)


def test_states_of_several_rows_are_not_repeated(tmp_path: Path) -> None:
    x = ops.parameter([2, 3], np.float32, name="x")
    states = [ops.constant(np.ones([2, 2], np.float32)) for _ in range(2)]
    path = tmp_path / "model.xml"
    ov.save_model(ov.Model(_cell(states, x).outputs(), [x]), path, compress_to_fp16=False)
    with pytest.raises(RuntimeError, match="not matched"):
        ov.Core().read_model(path).reshape([4, 3])
    with pytest.raises(ConversionError, match=r"LSTMCell.*2 is not 4"):
        convert(path, input_shapes={"x": [4, 3]})
