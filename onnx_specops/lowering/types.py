"""Element types that an opset lacks: constants are widened, and operators that only move data move wider types."""

from __future__ import annotations

import math

import onnx_ir as ir

from onnx_specops.building import Builder
from onnx_specops.graphs import all_nodes, all_values, origin
from onnx_specops.lowering.unsupported import UnsupportedNode
from onnx_specops.replacing import replace_value
from onnx_specops.retyping import retype

D = ir.DataType

# The opset that added a type, and the type that represents its values in older opsets.
_INTRODUCED = {
    D.BFLOAT16: (13, D.FLOAT),
    D.FLOAT8E4M3FN: (19, D.FLOAT),
    D.FLOAT8E5M2: (19, D.FLOAT),
    D.INT4: (21, D.INT8),
    D.UINT4: (21, D.UINT8),
}

# The types whose rounding float32 can represent: mantissa bits, smallest normal exponent, and the largest number, infinite
# where rounding itself makes larger ones infinite.
_ROUNDED = {
    D.BFLOAT16: (7, -126, math.inf),
    D.FLOAT8E4M3FN: (3, -6, 448.0),
    D.FLOAT8E5M2: (2, -14, 57344.0),
}


def _round(graph: ir.Graph, cast: ir.Node) -> None:
    """Round numbers to a shorter float type in float32, to nearest with ties to even."""
    (source,), (result,) = cast.inputs, cast.outputs
    assert source is not None and result.dtype is not None and isinstance(cast.graph, ir.Graph)
    bits, least, largest = _ROUNDED[result.dtype]
    op = Builder(cast.graph, root=Builder.of_existing(graph), before=cast)
    op.scope = cast.name or "Cast"
    x = op.Cast(source, to=D.FLOAT) if source.dtype != D.FLOAT else source
    # At a power of two the logarithm may be slightly off, but both possible steps represent the numbers there.
    exponent = op.Max(op.Floor(op.Div(op.Log(op.Abs(x)), math.log(2))), float(least))
    step = op.Pow(op.const(2.0), op.Sub(op.Min(exponent, 127.0), float(bits)))
    rounded = op.Mul(op.Round(op.Div(x, step)), step)
    if math.isinf(largest):
        within = rounded
    elif cast.attributes.get_int("saturate", 1):
        within = op.Max(op.Min(rounded, largest), -largest)
    else:
        beyond = op.Mul(op.Sign(x), math.inf) if result.dtype == D.FLOAT8E5M2 else op.const(math.nan)
        within = op.Where(op.Greater(op.Abs(rounded), largest), beyond, rounded)
    replace_value(result, within, equal=False)
    cast.graph.remove(cast, safe=True)


def least_opset_of_ports(graph: ir.Graph) -> int:
    """Return the oldest opset with the element types of a graph's inputs and outputs, which cannot be widened."""
    return max(
        (_INTRODUCED[value.dtype][0] for value in (*graph.inputs, *graph.outputs) if value.dtype in _INTRODUCED), default=0
    )


def widen_absent_types(model: ir.Model, opset: int) -> list[UnsupportedNode]:
    """Widen values of types that the opset lacks; return those that cannot change (inputs, outputs, casts)."""
    absent = {dtype: wide for dtype, (since, wide) in _INTRODUCED.items() if opset < since}
    if not any(value.dtype in absent for value in all_values(model.graph)):
        return []
    unsupported = [
        UnsupportedNode(value.name or "", f"an input or output of the type {value.dtype.name}", _INTRODUCED[value.dtype][0])
        for value in dict.fromkeys((*model.graph.inputs, *model.graph.outputs))
        if value.dtype in absent
    ]
    rounded: list[ir.Node] = []
    for node in list(all_nodes(model.graph)):
        if (node.domain, node.op_type) != ("", "Cast") or (source := node.inputs[0]) is None:
            continue
        dtype = node.outputs[0].dtype
        if dtype in _ROUNDED and dtype in absent and source.dtype not in (None, dtype, D.STRING):
            rounded.append(node)
        elif dtype in absent and source.dtype != dtype:
            unsupported.append(
                UnsupportedNode(
                    node.name or "", f"numbers rounded to the type {dtype.name}", _INTRODUCED[dtype][0], origin(node)
                )
            )
    if not unsupported:
        for node in rounded:
            _round(model.graph, node)
        retype(model, absent)
    return unsupported
