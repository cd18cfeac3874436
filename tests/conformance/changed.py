"""The sensitivity of OpenVINO's outputs to small changes of a model's numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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
    rng = np.random.default_rng(seed)

    def replacement(op: Any) -> np.ndarray | None:
        return None if op.data.size < 2 or _determines_a_shape(op) else _changed(op.data, change, rng)

    return _infer(path, [_changed(array, change, rng) for array in arrays], replacement, settings)


def infer_limited(path: str, arrays: Sequence[np.ndarray], limit: float) -> list[np.ndarray]:
    """Return the CPU plugin's outputs with finite constants limited to [-limit, limit]; runs in its process.

    Masks of attention have the least float32. Results of other runtimes in float16 have its least number instead, which
    matters where a mask hides every token of a row.
    """

    def replacement(op: Any) -> np.ndarray | None:
        numbers = op.data
        limited = np.where(np.isfinite(numbers), np.clip(numbers, -limit, limit), numbers).astype(numbers.dtype)
        return None if np.array_equal(limited, numbers, equal_nan=True) else limited

    return _infer(path, arrays, replacement, FLOAT32)


def _infer(
    path: str,
    arrays: Sequence[np.ndarray],
    replacement: Callable[[Any], np.ndarray | None],
    settings: Mapping[str, str],
) -> list[np.ndarray]:
    """Run the model with other numbers in its constants of floats."""
    import openvino as ov

    core = ov.Core()
    model = core.read_model(path)
    for op in model.get_ops():
        if op.get_type_name() == "Constant" and op.get_element_type() in (ov.Type.f32, ov.Type.f16):
            numbers = replacement(op)
            if numbers is not None:
                op.output(0).replace(ov.op.Constant(numbers).output(0))
    compiled = core.compile_model(model, "CPU", dict(settings))
    outputs = compiled(arrays)
    return [np.array(outputs[k]) for k in range(len(compiled.outputs))]


def _determines_a_shape(op: Any) -> bool:
    """Return whether a constant is the scales of an Interpolate, possibly through a Convert."""
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
