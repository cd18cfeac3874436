"""ONNX's reference evaluator for models with nodes of the domain."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import onnx
import onnx.inliner
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun

from onnx_specops.domain import DOMAIN, Operator, operators


def reference_evaluator(model: onnx.ModelProto | str | os.PathLike[str]) -> ReferenceEvaluator:
    """Create an ``onnx.reference.ReferenceEvaluator`` of ``model``; ``.run(None, inputs)`` returns the outputs.

    Nodes of the domain run as the bodies in the model. The bodies are inlined first, because the evaluator ignores
    ``overload``. Nodes without a body run as NumPy kernels. GatherElements also has a kernel here: the one of onnx 1.23
    fails for axes with more than 64 elements.

    Args:
        model: the model, or a path to it.
    """
    if not isinstance(model, onnx.ModelProto):
        model = onnx.load(model)
    if model.functions:
        model = onnx.inliner.inline_local_functions(model)
    return ReferenceEvaluator(model, new_ops=[GatherElements, *map(_op_run, operators())])


class GatherElements(OpRun):
    """The standard operator, for any number of elements."""

    op_domain = ""

    def _run(self, data: np.ndarray, indices: np.ndarray, axis: int = 0) -> tuple[np.ndarray]:
        at = np.where(indices < 0, indices + data.shape[axis], indices)
        # Along the other axes, the indices may have fewer elements than the data.
        places = list(np.ogrid[tuple(slice(size) for size in indices.shape)])
        places[axis] = at
        return (data[tuple(places)],)


def _op_run(operator: Operator) -> type[OpRun]:
    def run(self: OpRun, *inputs: Any, **_: Any) -> tuple[Any, ...]:
        given = {a.name: onnx.helper.get_attribute_value(a) for a in self.onnx_node.attribute}
        attributes = {name: value.decode() if isinstance(value, bytes) else value for name, value in given.items()}
        arrays = [
            None if value is None or (optional and np.size(value) == 0) else value
            for value, optional in zip(inputs, operator.optional, strict=False)
        ]
        results = operator(*arrays, **attributes)
        return results if isinstance(results, tuple) else (results,)

    return type(operator.name, (OpRun,), {"op_domain": DOMAIN, "_run": run})
