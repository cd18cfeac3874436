"""8-bit images that are resized before a Convert to floats: where OpenVINO rounds them, and where it does not.

It does not round if dimensions are unknown and it fuses the resizing with the following layers.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
import pytest
from openvino import Layout, Type, opset11
from openvino import opset13 as ops
from openvino.preprocess import PrePostProcessor, ResizeAlgorithm

import onnx_specops
from converters.openvino import convert

F, U8 = np.float32, np.uint8
IMAGE = np.random.default_rng(1).integers(0, 256, (2, 3, 13, 11)).astype(U8)


def _const(*numbers: float) -> ov.Node:
    return ops.constant(np.array(numbers, F).reshape(1, -1, 1, 1))


def _ints(*numbers: int) -> ov.Node:
    return ops.constant(np.array(numbers, np.int64))


def _convolved(x: ov.Node) -> ov.Node:
    weights = np.random.default_rng(0).standard_normal((2, 3, 3, 3)).astype(F)
    return ops.convolution(x, ops.constant(weights), [1, 1], [0, 0], [0, 0], [1, 1])


FUSED: dict[str, Callable[[ov.Node], ov.Node]] = {
    "relu": ops.relu,
    "hswish": ops.hswish,
    "number added": lambda x: ops.add(x, _const(2)),
    "taken from a number": lambda x: ops.subtract(_const(2), x),
    "scaled": lambda x: ops.divide(x, _const(255)),
    "scaled before a convolution": lambda x: _convolved(ops.divide(x, _const(255))),
    "normalized": lambda x: ops.divide(ops.subtract(x, _const(1, 2, 3)), _const(2, 3, 4)),
    "normalized by one number": lambda x: ops.divide(ops.subtract(x, _const(1, 2, 3)), _const(2)),
    "scaled and moved": lambda x: ops.add(ops.multiply(x, _const(2, 3, 4)), _const(1, 2, 3)),
    "nothing and relu": lambda x: ops.relu(ops.subtract(ops.add(x, _const(1, 2, 3)), _const(1, 2, 3))),
    "transposed relu": lambda x: ops.relu(ops.transpose(x, _ints(0, 2, 3, 1))),
    "scaled and back": lambda x: ops.divide(ops.multiply(x, _const(2)), _const(2)),
}
ROUNDED: dict[str, Callable[[ov.Node], ov.Node]] = {
    "result": lambda x: x,
    "floor": ops.floor,
    "divisor": lambda x: ops.divide(_const(3), ops.add(x, ops.constant(np.ones((1, 3, 8, 8), F)))),
    "power": lambda x: ops.power(x, _const(2)),
    "mean of channels": lambda x: ops.subtract(x, _const(1, 2, 3)),
    "scales of channels": lambda x: ops.multiply(x, _const(1.5, 2, 3)),
    "scales of channels, and a number": lambda x: ops.add(ops.multiply(x, _const(1.5, 2, 3)), _const(2)),
    "two scales": lambda x: ops.divide(ops.multiply(x, _const(1.5, 2, 3)), _const(3, 2, 1)),
    "convolution": _convolved,
    "pooling": lambda x: ops.avg_pool(x, [1, 1], [0, 0], [0, 0], [2, 2], True),
    "twice": lambda x: ops.add(x, x),
}


def _model(after: Callable[[ov.Node], ov.Node], *, batch: int = -1, mode: str = "linear_onnx", kind: Any = U8) -> ov.Model:
    x = ops.parameter([batch, 3, 13, 11], kind, name="x")
    resized = opset11.interpolate(x, _ints(8, 8), mode, "sizes", axes=_ints(2, 3))
    return ov.Model([ops.result(after(ops.convert(resized, F)))], [x])


def _agrees(model: ov.Model, folder: Path, image: np.ndarray, kernels: tuple[Any, ...] = ("native",), **options: Any) -> Any:
    """Compare the converted model with OpenVINO; return OpenVINO's result."""
    ov.save_model(model, folder / "model.xml", compress_to_fp16=False)
    compiled = ov.Core().compile_model(folder / "model.xml", "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    wanted = next(iter(compiled(image).values()))
    convert(folder / "model.xml", folder / "model.onnx", **options)
    for kind in kernels:
        session = onnx_specops.InferenceSession(folder / "model.onnx", kernels=kind)
        (got,) = session.run(None, {session.get_inputs()[0].name: image})
        np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=2e-5 * np.abs(wanted).max())
    return wanted


@pytest.mark.parametrize("name", [*FUSED, *ROUNDED])
def test_consumers_of_the_result(name: str, tmp_path: Path) -> None:
    """The result depends on whether all dimensions are known."""
    after = (FUSED | ROUNDED)[name]
    whole = _agrees(_model(after, batch=2), tmp_path, IMAGE)
    apart = _agrees(_model(after), tmp_path, IMAGE)
    assert np.allclose(whole, apart, rtol=1e-5, atol=1e-5) == (name in ROUNDED)


@pytest.mark.parametrize("mode", ["linear", "linear_onnx", "cubic", "nearest"])
@pytest.mark.parametrize("kind", [U8, np.int8])
def test_modes_and_types(mode: str, kind: Any, tmp_path: Path) -> None:
    """Includes numbers outside the range of the type."""
    _agrees(_model(ops.relu, mode=mode, kind=kind), tmp_path, IMAGE.view(kind), ("native", "python", "none"))


@pytest.mark.parametrize("options", [{"opset": 13}, {"opset": 17}, {"precision": "float32"}, {"contrib": False}], ids=str)
def test_options(options: dict[str, Any], tmp_path: Path) -> None:
    _agrees(_model(FUSED["normalized"]), tmp_path, IMAGE, ("none",), **options)


@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
@pytest.mark.parametrize("end", ["relu", "convolution"])
@pytest.mark.parametrize(
    "steps", ["rf", "rfM", "rfs", "rfS", "rfMS", "rfMs", "rfms", "rlfMS", "rfMlS", "rfls", "frMS", "fMSr"]
)
def test_preprocessing(layout: str, end: str, steps: str, tmp_path: Path) -> None:
    """Steps of a PrePostProcessor: resize, float, mean, scale (per channel), layout."""
    x = ops.parameter([-1, 3, 8, 8], F, name="x")
    model = ov.Model([ops.result(ops.relu(x) if end == "relu" else _convolved(x))], [x])
    made = PrePostProcessor(model)
    made.input().tensor().set_element_type(Type.u8).set_layout(Layout(layout)).set_spatial_static_shape(13, 11)
    made.input().model().set_layout(Layout("NCHW"))
    step = made.input().preprocess()
    for name in steps:
        {
            "r": lambda: step.resize(ResizeAlgorithm.RESIZE_LINEAR),
            "f": lambda: step.convert_element_type(Type.f32),
            "m": lambda: step.mean(10.0),
            "M": lambda: step.mean([10.0, 20.0, 30.0]),
            "s": lambda: step.scale(255.0),
            "S": lambda: step.scale([2.0, 3.0, 4.0]),
            "l": lambda: step.convert_layout(Layout("NCHW")),
        }[name]()
    image = IMAGE if layout == "NCHW" else np.ascontiguousarray(IMAGE.transpose(0, 2, 3, 1))
    _agrees(made.build(), tmp_path, image)
