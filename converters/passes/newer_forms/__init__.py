"""Operators that ONNX added after the builder's opset, in the place of the nodes that compute the same.

Each pass says which opset has its operator.
"""

from __future__ import annotations

from onnx_ir.passes import InPlacePass
from onnx_ir.passes.common import RemoveUnusedNodesPass

from converters.passes.newer_forms.rms_normalization import FuseRMSNormalization
from converters.passes.newer_forms.rotary_embedding import FuseRotaryEmbedding
from converters.passes.newer_forms.swish import FuseSwish


def newer_forms(opset: int, *, swish: bool = True) -> list[InPlacePass]:
    """The passes for an opset.

    Args:
        opset: the opset that the model will be in.
        swish: whether Swish may be emitted. ONNX Runtime (1.32) has no kernel of it. It computes its body, at opset 24
            alone, which takes 1.8 times as long as Sigmoid and Mul.
    """
    passes: list[InPlacePass] = []
    if opset >= 23:
        passes += [RemoveUnusedNodesPass(), FuseRMSNormalization(), FuseRotaryEmbedding(), RemoveUnusedNodesPass()]
    if opset == 24 and swish:
        passes += [FuseSwish(), RemoveUnusedNodesPass()]
    return passes
