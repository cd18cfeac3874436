"""Replacement of nodes by operators that ONNX added after the builder's opset.

Each pass names the opset of its operator.
"""

from __future__ import annotations

from collections.abc import Callable

from onnx_ir.passes import InPlacePass
from onnx_ir.passes.common import RemoveUnusedNodesPass

from converters.passes.newer_forms.rms_normalization import FuseRMSNormalization
from converters.passes.newer_forms.rotary_embedding import FuseRotaryEmbedding
from converters.passes.newer_forms.swish import FuseSwish


def newer_forms(opset: int, *, swish: bool = True, has: Callable[[str], bool] = lambda operator: True) -> list[InPlacePass]:
    """Return the passes for an opset.

    Args:
        opset: the opset of the model.
        has: whether the program that loads the model has an operator.
        swish: whether Swish may be emitted. ONNX Runtime (1.32) has no kernel for it. At opset 24 only, it runs the
            operator's function, which takes 1.8 times as long as Sigmoid and Mul.
    """
    passes: list[InPlacePass] = []
    if opset >= 23:
        fusions = {"RMSNormalization": FuseRMSNormalization, "RotaryEmbedding": FuseRotaryEmbedding}
        found = [step() for operator, step in fusions.items() if has(operator)]
        passes += [RemoveUnusedNodesPass(), *found, RemoveUnusedNodesPass()]
    if opset == 24 and swish and has("Swish"):
        passes += [FuseSwish(), RemoveUnusedNodesPass()]
    return passes
