"""Element types that an opset lacks: constants of them are widened, and what only moves their elements moves wider ones."""

from __future__ import annotations

import onnx_ir as ir

from onnx_specops.graphs import all_nodes, all_values
from onnx_specops.lowering.refusing import Refusal
from onnx_specops.retyping import retype

D = ir.DataType

# The opset that brought a type, and the type that holds its values below that.
_BROUGHT = {
    D.BFLOAT16: (13, D.FLOAT),
    D.FLOAT8E4M3FN: (19, D.FLOAT),
    D.FLOAT8E5M2: (19, D.FLOAT),
    D.INT4: (21, D.INT8),
    D.UINT4: (21, D.UINT8),
}

# OpenVINO's CPU rounds nothing to them between computations, so that casting to them may go; to others it may not.
_UNROUNDED = {D.BFLOAT16}


def widen_absent_types(model: ir.Model, opset: int) -> list[Refusal]:
    """Widen what is of a type that the opset lacks; returns what cannot be: inputs, outputs and casts to such a type."""
    absent = {dtype: wide for dtype, (since, wide) in _BROUGHT.items() if opset < since}
    if not any(value.dtype in absent for value in all_values(model.graph)):
        return []
    refusals = [
        Refusal(value.name or "", f"an input or output of the type {value.dtype.name}", _BROUGHT[value.dtype][0])
        for value in dict.fromkeys((*model.graph.inputs, *model.graph.outputs))
        if value.dtype in absent
    ]
    for node in all_nodes(model.graph):
        if (node.domain, node.op_type) != ("", "Cast") or (source := node.inputs[0]) is None:
            continue
        dtype = node.outputs[0].dtype
        if dtype in absent and dtype not in _UNROUNDED and source.dtype != dtype:
            refusals.append(Refusal(node.name or "", f"numbers rounded to the type {dtype.name}", _BROUGHT[dtype][0]))
    if not refusals:
        retype(model, absent)
    return refusals
