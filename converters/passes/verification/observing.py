"""A run of the whole model before the passes, to record the shapes and integers of its values."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx_ir as ir

from converters.passes.verification.regions import FLOATS, NotEvaluated, copied_model
from converters.passes.verification.running import session

_MAX_ELEMENTS = 1 << 16
"""For larger tensors of integers, only the shape is recorded."""


def observe(model: ir.Model, feeds: Mapping[ir.Value, np.ndarray]) -> dict[ir.Value, np.ndarray | tuple[int, ...]]:
    """Return the shapes of the model's floats and the elements of its other values, for one set of inputs.

    Args:
        model: the model, in which nodes of the domain need no bodies.
        feeds: its inputs, and all other values that no node computes.

    Raises:
        NotEvaluated: ONNX Runtime cannot run it.
    """
    if missing := [value.name for value in model.graph.inputs if value not in feeds]:
        raise NotEvaluated(f"there is no input {missing[0]}")
    inputs = list(feeds)
    values = [value for node in model.graph for value in node.outputs if value.name and value.type is not None]
    values = [value for value in values if value.dtype is not None]
    copy = copied_model(list(model.graph), inputs, values, shapes_of=FLOATS)
    running = session(copy)
    given = {f"v{place}": array for place, array in enumerate(feeds.values())}
    needed = {port.name for port in running.get_inputs()}
    try:
        results = running.run(None, {name: array for name, array in given.items() if name in needed})
    except Exception as error:  # ONNX Runtime's exceptions have no common base class
        raise NotEvaluated(f"ONNX Runtime cannot run it: {str(error).splitlines()[0][:200]}") from error
    found: dict[ir.Value, np.ndarray | tuple[int, ...]] = {}
    for value, array in zip(inputs, given.values(), strict=True):
        found[value] = array.shape if value.dtype in FLOATS else array
    for value, result in zip(values, results, strict=True):
        if value.dtype in FLOATS:
            found[value] = tuple(result.tolist())
        else:
            found[value] = result if result.size <= _MAX_ELEMENTS else result.shape
    return found
