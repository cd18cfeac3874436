"""Models whose inputs a user reshapes, compared with OpenVINO's ``Model.reshape``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import openvino as ov
import pytest
from openvino import opset13 as ops

import onnx_specops
from converters.openvino import convert
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
