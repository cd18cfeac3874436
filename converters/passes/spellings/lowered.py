"""Operators that an older opset lacks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import onnx_ir as ir

from converters.passes.workaround import Workaround
from onnx_specops.building import Builder, Value
from onnx_specops.lowering.adapters import SAME, LoweringBuilder, NotRepresentableError, adapters


class _Lowered(Workaround):
    """Replaces the nodes of one operator by their equivalents of an opset, if they have one."""

    opset: ClassVar[int]
    finite = True

    def replacement(self, op: Builder, node: ir.Node) -> Sequence[Value] | None:
        adapter = next(one for one in adapters(node.op_type) if one.opset > self.opset)
        try:
            result = adapter(LoweringBuilder(self.opset, node, op), node)
        except NotRepresentableError:
            return None
        if result is SAME:
            return None
        return [result] if isinstance(result, Value) else result


class LowerCol2Im(_Lowered):
    """Convert Col2Im to ConvTranspose. OpenCV (4.14.0, 5.0.0), tract (0.23) and WebGPU (0.4) lack it."""

    operators = frozenset(("Col2Im",))
    opset = 17


class LowerDFT(_Lowered):
    """Convert DFT to matrix multiplications. OpenCV 4.14, MNN (3.6) and TVM (0.27) lack it."""

    operators = frozenset(("DFT",))
    opset = 16
