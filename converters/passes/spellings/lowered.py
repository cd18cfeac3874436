"""Operators in the form of an older opset that lacks them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import onnx_ir as ir
from onnx_ir.passes import InPlacePass, PassResult

from onnx_specops.building import Builder, Value
from onnx_specops.graphs import all_nodes
from onnx_specops.lowering.adapters import SAME, LoweringBuilder, NotRepresentableError, adapters
from onnx_specops.replacing import may_replace, replace_value, rewriting


class _Lowered(InPlacePass):
    """Replaces the nodes of some operators by their equivalents of an opset, if they have one."""

    opsets: ClassVar[Mapping[str, int]]

    def call(self, model: ir.Model) -> PassResult:
        count = 0
        for node in list(all_nodes(model.graph)):
            if node.domain or node.op_type not in self.opsets or not isinstance(node.graph, ir.Graph):
                continue
            with rewriting(type(self).__name__, finite=True):
                count += _replaced(node, self.opsets[node.op_type], Builder.of_existing(model.graph))
        return PassResult(model, modified=count > 0)


def _replaced(node: ir.Node, opset: int, root: Builder) -> bool:
    op = LoweringBuilder(opset, node, root)
    adapter = next(one for one in adapters(node.op_type) if one.opset > opset)
    try:
        result = adapter(op, node)
    except NotRepresentableError:
        return False
    if result is SAME:
        return False
    results: Sequence[Value] = [result] if isinstance(result, Value) else result
    pairs = [(old, op.place(new)) for old, new in zip(node.outputs, results, strict=True)]
    if not may_replace(pairs):
        return False
    for old, new in pairs:
        replace_value(old, new, checked=True)
    assert node.graph is not None
    node.graph.remove(node, safe=True)
    return True


class LowerCol2Im(_Lowered):
    """Convert Col2Im to ConvTranspose. OpenCV (4.14.0, 5.0.0), tract (0.23) and WebGPU (0.4) lack it."""

    opsets: ClassVar[Mapping[str, int]] = {"Col2Im": 17}


class LowerDFT(_Lowered):
    """Convert DFT to matrix multiplications. OpenCV 4.14, MNN (3.6) and TVM (0.27) lack it."""

    opsets: ClassVar[Mapping[str, int]] = {"DFT": 16}
