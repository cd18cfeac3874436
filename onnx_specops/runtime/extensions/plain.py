"""What a failing Python kernel may return in a plain ``onnxruntime.InferenceSession``, which knows nothing of us.

Nothing, as a rule. But where ONNX Runtime has allocated the output before the node runs, because its shape is declared (a
branch of an If, a Scan's body) or because the caller bound memory to it, any other shape ends the process.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort

from onnx_specops.domain import DOMAIN, NodeInfo, Operator
from onnx_specops.inlining import graphs_and_functions

_BINDING = ("run_with_iobinding", "run_with_ortvaluevector")


def may_have_allocated(name: str) -> bool:
    """Whether the session that is running in this thread may have allocated an output of the operator called ``name``."""
    frame = sys._getframe()
    while frame is not None:
        session = frame.f_locals.get("self")
        if isinstance(session, ort.InferenceSession):
            return frame.f_code.co_name in _BINDING or name in _declared_in_subgraphs(session)
        frame = frame.f_back  # type: ignore[assignment]
    return False


def _declared_in_subgraphs(session: ort.InferenceSession) -> set[str]:
    """The operators of the domain whose outputs are outputs of nested graphs, or of functions that may stand there."""
    if session._model_path:
        model = onnx.load(session._model_path, load_external_data=False)
    else:
        model = onnx.load_from_string(session._model_bytes)
    names: set[str] = set()
    for holder in graphs_and_functions(model):
        if holder is not model.graph:
            outputs = {output if isinstance(output, str) else output.name for output in holder.output}
            names |= {n.op_type for n in holder.node if n.domain == DOMAIN and outputs.intersection(n.output)}
    return names


class _Arrays(NodeInfo):
    """A node whose inputs are all known."""

    def has(self, index: int) -> bool:
        return index < len(self._context) and not (self.operator.optional[index] and self._context[index].size == 0)

    def shape(self, index: int) -> list[int | str | None] | None:
        return list(self._context[index].shape) if self.has(index) else None

    def element_type(self, index: int) -> int:
        return onnx.helper.np_dtype_to_tensor_dtype(self._context[index].dtype) if self.has(index) else 0

    def constant(self, index: int) -> Any | None:
        return self._context[index] if self.has(index) else None


def output_shapes(operator: Operator, arrays: Sequence[np.ndarray], attributes: Mapping[str, Any]) -> list[tuple[int, ...]]:
    """The shapes that the outputs would have, ``(0,)`` where that cannot be known."""
    node = _Arrays(operator, attributes, arrays)
    shapes = operator._infer(node) if operator._infer else [None] * len(operator.outputs)
    known = [s is not None and all(isinstance(d, int) and d >= 0 for d in s) for s in shapes]
    return [tuple(shape) if is_known else (0,) for shape, is_known in zip(shapes, known, strict=True)]  # type: ignore[arg-type]


def meaningless(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """NaN, or the integer that no result is likely to be."""
    if dtype.kind in "iu":
        return np.full(shape, np.iinfo(dtype).min if dtype.kind == "i" else np.iinfo(dtype).max, dtype)
    return np.full(shape, {"b": False, "O": ""}.get(dtype.kind, np.nan), dtype)
