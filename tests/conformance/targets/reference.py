"""The expected outputs of a network of the matrix: OpenVINO's, computed in several ways.

OpenVINO's CPU plugin computes a network with static shapes, which is what its users run, and again with dynamic ones, for
which it selects other kernels and rewrites. If the results differ, the operations decide, computed one by one: by the
reference kernels of OpenVINO's specification (``Model.evaluate``), or by the plugin where there are none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
from openvino import opset13 as ops

from converters.validation.compare import Tolerance, compare

SETTINGS = {"INFERENCE_PRECISION_HINT": "f32", "DYNAMIC_QUANTIZATION_GROUP_SIZE": "0"}
TOLERANCE = Tolerance(1e-2, 1e-3)
"""The difference of two results that are the same, which is also that of most consumers."""

Arrays = list[np.ndarray]


def reference(path: Path, arrays: Sequence[np.ndarray]) -> tuple[Arrays, str]:
    """Return the expected outputs of a model with static shapes, and how the CPU plugin departs from them, if it does.

    The text ends with "undecided" if the operations give a third result, or none. The plugin's result is expected then.
    """
    static = plugin(path, arrays)
    dynamic = _attempt(lambda: plugin(path, arrays, free=True))
    if dynamic is not None and (apart := distance(dynamic, static)) == 0:
        return static, ""
    evaluated = _attempt(lambda: by_operation(path, arrays))
    if dynamic is None:  # the network needs static shapes
        if evaluated is None or (apart := distance(evaluated, static)) == 0:
            return static, ""
        return evaluated, f"computes other results than its operations one by one (largest difference {apart:.2g})"
    text = f"computes other results with static shapes than with dynamic ones (largest difference {apart:.2g})"
    if evaluated is not None and distance(evaluated, static) == 0:
        return static, ""
    if evaluated is not None and distance(evaluated, dynamic) == 0:
        return dynamic, f"{text}; its operations one by one agree with the latter"
    return static, f"{text}; undecided"


def plugin(path: Path, arrays: Sequence[np.ndarray], *, free: bool = False, **settings: str) -> Arrays:
    """Return the results of the CPU plugin in float32; ``free``: with dynamic shapes."""
    core = ov.Core()
    model = core.read_model(path)
    if free:
        model.reshape({index: [-1] * array.ndim for index, array in enumerate(arrays)})
    compiled = core.compile_model(model, "CPU", SETTINGS | settings)
    return [np.array(array) for array in compiled(list(arrays)).values()]


def by_operation(path: Path, arrays: Sequence[np.ndarray]) -> Arrays:
    """Return the results of the operations one by one: of the reference kernels, or of the plugin where there are none."""
    core = ov.Core()
    model = core.read_model(path)
    given = {parameter.get_friendly_name(): array for parameter, array in zip(model.get_parameters(), arrays, strict=True)}
    nodes = model.get_ordered_ops()
    sources = [[_key(port.get_source_output()) for port in node.inputs()] for node in nodes]
    computed: dict[tuple[str, int], np.ndarray] = {}
    for node, keys in zip(nodes, sources, strict=True):
        kind, name = node.get_type_name(), node.get_friendly_name()
        if kind == "Parameter":
            computed[name, 0] = given[name]
        elif kind not in ("Constant", "Result"):
            found = _operation(core, node, [computed.get(key) for key in keys])
            computed |= {(name, index): array for index, array in enumerate(found)}
    constants = {node.get_friendly_name(): node for node in nodes if node.get_type_name() == "Constant"}
    results = [sources[nodes.index(result)][0] for result in model.get_results()]
    return [computed[key] if key in computed else np.array(constants[key[0]].data) for key in results]


def _operation(core: ov.Core, node: Any, arrays: Sequence[np.ndarray | None]) -> Arrays:
    """Return the results of an operation; its inputs without array are constants."""
    parameters, feeds = [], []
    for port, array in zip(node.inputs(), arrays, strict=True):
        if array is not None:
            parameters.append(ops.parameter(list(array.shape), port.get_element_type()))
            feeds.append(np.array(array, order="C"))
            port.replace_source_output(parameters[-1].output(0))
    model = ov.Model([ops.result(output) for output in node.outputs()], parameters)
    outputs = [ov.Tensor(port.element_type, ov.Shape([0])) for port in model.outputs]
    try:
        if model.evaluate(outputs, [ov.Tensor(array) for array in feeds]):
            return [np.array(output.data) for output in outputs]
    except RuntimeError:
        pass  # it has no reference kernel
    return [np.array(array) for array in core.compile_model(model, "CPU", SETTINGS)(feeds).values()]


def _key(output: Any) -> tuple[str, int]:
    return output.get_node().get_friendly_name(), output.get_index()


def distance(found: Arrays, expected: Arrays) -> float:
    """Return 0 if results agree, otherwise their largest difference; infinity if one has another shape."""
    if [array.shape for array in found] != [array.shape for array in expected]:
        return float("inf")
    outcomes = [compare(a, b, TOLERANCE) for a, b in zip(found, expected, strict=True)]
    if all(outcome.agrees for outcome in outcomes):
        return 0.0
    return max(outcome.max_absolute or 0.0 for outcome in outcomes)


def _attempt(compute: Callable[[], Any]) -> Any:
    """Return the results of a computation; ``None`` if OpenVINO does not have it."""
    try:
        return compute()
    except RuntimeError:
        return None
