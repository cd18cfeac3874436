"""Models of one operation, built with OpenVINO's factories from the arrays that they are run with."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

from tests.conformance.case import Case, IRText, Oracle

Run = Sequence[np.ndarray]


def case(
    operation: str,
    version: str,
    name: str,
    make: str | Callable[..., Any],
    *runs: Run,
    constants: Collection[int] = (),
    shapes: Sequence[Any] | None = None,
    dynamic: bool = False,
    options: dict[str, Any] | None = None,
    **attributes: Any,
) -> Case:
    """A case of one operation.

    Args:
        operation: its name in the specification.
        version: its opset in the IR.
        name: what is special about the case.
        make: the factory (``"opset1.add"``), called with the inputs' nodes and ``attributes``; or a function of the nodes.
        runs: for each run the arrays of all the operation's inputs.
        constants: the indexes of the inputs that are constants, taken from the first run.
        shapes: the Parameters' partial shapes, one for every input; by default those of the first run's arrays.
        dynamic: whether every Parameter's dimensions are unknown.
        options: further fields of the `Case`.
        attributes: the factory's keyword arguments.
    """

    def build() -> Any:
        import openvino as ov

        nodes, parameters = [], []
        for index, array in enumerate(runs[0]):
            kind = element_type(array)
            if index in constants:
                nodes.append(constant(array))
                continue
            shape = shapes[index] if shapes is not None else [-1] * array.ndim if dynamic else list(array.shape)
            shape = ov.PartialShape.dynamic() if shape is None else ov.PartialShape(shape)
            nodes.append(importlib.import_module("openvino.opset1").parameter(shape, kind))
            parameters.append(nodes[-1])
        result = factory(make)(*nodes, **attributes) if isinstance(make, str) else make(*nodes, **attributes)
        results = result if isinstance(result, list) else result.outputs()
        return ov.Model(results, parameters)

    inputs = [tuple(array for i, array in enumerate(run) if i not in constants) for run in runs]
    return Case(operation, version, name, build, inputs, **(options or {}))


def decided(oracle: Oracle, reason: str, *expected: np.ndarray) -> dict[str, Any]:
    """The `Case` fields for a case that one oracle decides: ``expected`` holds one run's outputs for ``"expected"``."""
    fields: dict[str, Any] = {"oracle": oracle, "reason": reason}
    return fields | ({"expected": [list(expected)]} if expected else {})


def text_case(operation: str, version: str, name: str, replace: Callable[[str], str], model: Case, **options: Any) -> Case:
    """The case ``model`` with its IR's text changed by ``replace``, for what no factory builds."""

    def build() -> IRText:
        import tempfile
        from pathlib import Path

        with tempfile.TemporaryDirectory() as folder:
            path = model.save(Path(folder))
            text, weights = path.read_text(), path.with_suffix(".bin").read_bytes()
        changed = replace(text)
        assert changed != text, "the replacement finds nothing in the IR"
        return IRText(changed, weights)

    return Case(operation, version, name, build, model.inputs, **options)


def factory(name: str) -> Callable[..., Any]:
    """``"opset1.add"`` as the function."""
    module, _, function = name.rpartition(".")
    return getattr(importlib.import_module(f"openvino.{module}"), function)


def node(kind: str, opset: str, **attributes: Any) -> Callable[..., Any]:
    """A function of nodes that makes a node of any type, where the factory leaves an attribute out."""

    def make(*inputs: Any) -> Any:
        from openvino.utils.node_factory import NodeFactory

        return NodeFactory(opset).create(kind, [i.output(0) for i in inputs], attributes)

    return make


def element_type(array: np.ndarray) -> Any:
    """OpenVINO's element type for the array's."""
    import openvino as ov

    return {"bfloat16": ov.Type.bf16}.get(str(array.dtype)) or ov.Type(array.dtype)


def constant(array: np.ndarray) -> Any:
    """A constant; an empty one as well."""
    import openvino as ov

    if array.size and str(array.dtype) != "bfloat16":
        return ov.op.Constant(np.ascontiguousarray(array).reshape(array.shape))
    return ov.op.Constant(element_type(array), ov.Shape(list(array.shape)), array.astype(np.float64).reshape(-1).tolist())
