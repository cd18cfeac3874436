"""The results of failed Python kernels in a plain ``onnxruntime.InferenceSession``.

The outputs are usually empty. ONNX Runtime may allocate an output before the node runs, because its shape is declared (in a
branch of an If, or the body of a Scan) or because the caller bound memory to it. In this case, any other shape crashes the
process.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort

from onnx_specops.domain import DOMAIN, Operator
from onnx_specops.inlining import graphs_and_functions

_BINDING = ("run_with_iobinding", "run_with_ortvaluevector")


def may_have_allocated(name: str) -> bool:
    """Return whether the session running in this thread may have allocated an output of the operator ``name``."""
    frame = sys._getframe()
    while frame is not None:
        session = frame.f_locals.get("self")
        if isinstance(session, ort.InferenceSession):
            return frame.f_code.co_name in _BINDING or name in _declared_in_subgraphs(session)
        frame = frame.f_back  # type: ignore[assignment]
    return False


def _declared_in_subgraphs(session: ort.InferenceSession) -> set[str]:
    """Return the operators of the domain whose outputs are outputs of nested graphs, or of functions that may be called
    there.
    """
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


def output_shapes(operator: Operator, arrays: Sequence[np.ndarray], attributes: Mapping[str, Any]) -> list[tuple[int, ...]]:
    """Return the shapes that the outputs would have, or ``(0,)`` if unknown."""
    given = [
        None if is_optional and array.size == 0 else array
        for array, is_optional in zip(arrays, operator.optional, strict=True)
    ]
    return [(0,) if shape is None else shape for shape in operator.output_shapes(given, attributes)]


def meaningless(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """Return an array of NaN, or of an integer that is unlikely as a result."""
    if dtype.kind in "iu":
        return np.full(shape, np.iinfo(dtype).min if dtype.kind == "i" else np.iinfo(dtype).max, dtype)
    return np.full(shape, {"b": False, "O": ""}.get(dtype.kind, np.nan), dtype)
