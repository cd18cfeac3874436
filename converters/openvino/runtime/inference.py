"""Inference of a model, and evaluation with the reference kernels, in OpenVINO's own process."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

from converters.openvino.runtime.extensions import new_core
from converters.source import Inference
from converters.validation.low_precision import loaded, stored

FLOAT32 = {"INFERENCE_PRECISION_HINT": "f32", "DYNAMIC_QUANTIZATION_GROUP_SIZE": "0"}
"""Settings for float32 computation, including the inputs of layers with compressed weights, which the plugin would round to
8 bits.
"""

EXACT = {**FLOAT32, "LP_TRANSFORMS_MODE": "NO"}
"""Settings for float32 computation as in the file, including quantized layers."""

SHIPPED = {"INFERENCE_PRECISION_HINT": "f32"}
"""OpenVINO's default settings, except for 16-bit floats: quantized layers are computed in integers."""

# OpenVINO's types that it returns as other NumPy types.
_LACKING = {
    "bf16": ml_dtypes.bfloat16,
    "f8e4m3": ml_dtypes.float8_e4m3fn,
    "f8e5m2": ml_dtypes.float8_e5m2,
    "f8e8m0": ml_dtypes.float8_e8m0fnu,
    "f4e2m1": ml_dtypes.float4_e2m1fn,
    "i4": ml_dtypes.int4,
    "u4": ml_dtypes.uint4,
}
# ONNX Runtime has no kernels for these types, so float32 represents their values.
_CARRIED = ("f8e8m0", "f4e2m1")


@dataclass(frozen=True)
class LayerOutput:
    """An output of a layer of the IR: the layer's friendly name and type, and the output index."""

    name: str
    type: str
    index: int


def infer(
    path: str,
    runs: Sequence[Sequence[np.ndarray]],
    *,
    state: bool = False,
    layers: Sequence[LayerOutput] = (),
    timed: bool = False,
    extensions: Sequence[str] = (),
    settings: Mapping[str, str] = FLOAT32,
) -> Inference:
    """Infer the IR on the CPU.

    Args:
        path: the .xml.
        runs: for each run, the inputs in the model's order.
        state: whether variables keep their values between runs.
        layers: further values to return.
        timed: whether to repeat the last run to measure the time.
        extensions: see `new_core`.
        settings: the CPU plugin's settings.
    """
    core, model = read_model(path, extensions)
    count = len(model.outputs)
    exposed = _expose(model, layers)
    unranked = any(port.partial_shape.rank.is_dynamic for port in model.inputs)
    compiled = request = None
    feeds: dict[int, Any] = {}
    results: list[list[np.ndarray]] = []
    for arrays in runs:
        if unranked:  # the plugin does not support inputs of unknown rank, so a user must reshape the model first
            model.reshape({port: list(a.shape) for port, a in zip(model.inputs, arrays, strict=True)})
        if compiled is None or unranked:
            compiled = core.compile_model(model, "CPU", dict(settings))
        if request is None or not state:
            request = compiled.create_infer_request()
        feeds = {i: as_tensor(port, a) for i, (port, a) in enumerate(zip(compiled.inputs, arrays, strict=True))}
        request.infer(feeds)
        results.append([_array(request.get_output_tensor(index)) for index in range(len(compiled.outputs))])
    started = time.perf_counter()
    if timed and request is not None:
        request.infer(feeds)
    seconds = time.perf_counter() - started
    values = [None if at is None else results[0][at] for at in exposed]
    return Inference([outputs[:count] for outputs in results], values, seconds)


def evaluate(path: str, runs: Sequence[Sequence[np.ndarray]]) -> list[list[np.ndarray]]:
    """Return the outputs of each run from ``Model.evaluate``, OpenVINO's reference kernels."""
    import openvino as ov

    _, model = read_model(path)
    results = []
    for arrays in runs:
        outputs = [
            ov.Tensor(port.get_element_type(), port.shape if port.partial_shape.is_static else ov.Shape([0]))
            for port in model.outputs
        ]
        inputs = [as_tensor(port, array) for port, array in zip(model.inputs, arrays, strict=True)]
        if not model.evaluate(outputs, inputs):
            raise RuntimeError("Model.evaluate cannot run this model")
        results.append([_array(tensor) for tensor in outputs])
    return results


def read_model(path: str, extensions: Sequence[str] = ()) -> tuple[Any, Any]:
    """Return a Core with extensions, and the model."""
    if not extensions and 'version="extension"' in Path(path).read_text(errors="replace"):
        import openvino_tokenizers  # noqa: F401  (gives every Core the string operations)
    core = new_core(extensions)
    return core, core.read_model(path)


def _expose(model: Any, layers: Sequence[LayerOutput]) -> list[int | None]:
    """Add the layers' outputs to the model's, and return their positions."""
    operations = list(model.get_ops())
    names = Counter(op.get_friendly_name() for op in operations)
    by_name = {op.get_friendly_name(): op for op in operations}
    places: list[int | None] = []
    for layer in layers:
        op = by_name.get(layer.name)
        # Reading may replace layers of old files, and names need not be unique.
        if op is None or names[layer.name] > 1 or op.get_type_name() != layer.type or layer.index >= op.get_output_size():
            places.append(None)
            continue
        model.add_outputs([op.output(layer.index)])  # does not add an output twice
        places.append(model.get_result_index(op.output(layer.index)))
    return places


def as_tensor(port: Any, array: np.ndarray) -> Any:
    """Return an array as a tensor of the input's element type."""
    import openvino as ov

    kind = port.get_element_type()
    if kind == ov.Type.string:
        return ov.Tensor(np.asarray(array, dtype=str))
    if (dtype := _LACKING.get(kind.get_type_name())) is None:
        return ov.Tensor(np.ascontiguousarray(array).reshape(array.shape))
    tensor = ov.Tensor(kind, ov.Shape(list(array.shape)))
    tensor.data.reshape(-1).view(np.uint8)[...] = stored(array.astype(dtype))
    return tensor


def _array(tensor: Any) -> np.ndarray:
    import openvino as ov

    if tensor.element_type == ov.Type.string:
        return np.asarray(tensor.str_data, dtype=object)
    name = tensor.element_type.get_type_name()
    if name in _LACKING:
        array = loaded(tensor.data.tobytes(), np.dtype(_LACKING[name]), tuple(tensor.shape))
        return array.astype(np.float32) if name in _CARRIED else array
    if tensor.element_type.bitwidth % 8:
        raise TypeError(f"NumPy has no type for {name}")
    return np.array(tensor.data)
