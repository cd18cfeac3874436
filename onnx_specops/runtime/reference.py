"""ONNX's own reference evaluator for models with nodes of the domain."""

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
    """An ``onnx.reference.ReferenceEvaluator`` of ``model``: ``.run(None, inputs)`` gives the outputs.

    Nodes of the domain run as the bodies that the model carries, inlined first, since the evaluator takes functions that
    differ in ``overload`` only for one. Nodes without a body run as NumPy kernels. GatherElements has a kernel too: onnx's
    own fails where the axis has more than 64 elements (onnx 1.23).

    Args:
        model: the model, or a path to it.
    """
    if not isinstance(model, onnx.ModelProto):
        model = onnx.load(model)
    if model.functions:
        model = onnx.inliner.inline_local_functions(model)
    return ReferenceEvaluator(model, new_ops=[GatherElements, *map(_op_run, operators())])


class GatherElements(OpRun):
    """The standard operator, with any number of elements."""

    op_domain = ""

    def _run(self, data: np.ndarray, indices: np.ndarray, axis: int = 0) -> tuple[np.ndarray]:
        at = np.where(indices < 0, indices + data.shape[axis], indices)
        # Along the other axes the indices may be fewer than the data.
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
