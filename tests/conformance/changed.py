"""The sensitivity of OpenVINO's outputs to small changes of a model's numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from converters.openvino.runtime.inference import FLOAT32


def infer_changed(
    path: str, arrays: Sequence[np.ndarray], change: float, seed: int, settings: Mapping[str, str] = FLOAT32
) -> list[np.ndarray]:
    """Return the CPU plugin's outputs after changing the floats of inputs and of non-scalar constants; runs in its process.

    Args:
        path: the IR.
        arrays: its inputs.
        change: the relative change of the numbers, up or down.
        seed: the seed of the directions.
        settings: the plugin's settings.
    """
    import openvino as ov

    rng = np.random.default_rng(seed)
    core = ov.Core()
    model = core.read_model(path)
    for op in model.get_ops():
        if op.get_type_name() != "Constant" or op.get_element_type() not in (ov.Type.f32, ov.Type.f16):
            continue
        if op.data.size > 1 and not _determines_a_shape(op):
            op.output(0).replace(ov.op.Constant(_changed(op.data, change, rng)).output(0))
    compiled = core.compile_model(model, "CPU", dict(settings))
    outputs = compiled([_changed(array, change, rng) for array in arrays])
    return [np.array(outputs[k]) for k in range(len(compiled.outputs))]


def _determines_a_shape(op: Any) -> bool:
    """Return whether a constant has the scales of Interpolate, perhaps through a Convert."""
    users = [user for port in op.outputs() for user in port.get_target_inputs()]
    return any(
        _determines_a_shape(user.get_node())
        if user.get_node().get_type_name() == "Convert"
        else user.get_node().get_type_name() == "Interpolate" and user.get_index() > 0
        for user in users
    )


def _changed(array: np.ndarray, change: float, rng: np.random.Generator) -> np.ndarray:
    if array.dtype.kind != "f":
        return array
    relative = max(change, float(np.finfo(array.dtype).eps))
    return (array * (1 + relative * rng.choice([-1, 1], array.shape))).astype(array.dtype)
