"""What ONNX Runtime's CPU kernels and optimisations cannot do: a module for each quirk, with the release that showed it.

Rules emit what ONNX means. A target that is not ONNX Runtime leaves these passes out and gets the plain form; a quirk that a
release mends is a module to delete.

`kernel_workarounds` run first, on what the rules emit; `fusion_guards` last, on the graph that ONNX Runtime would optimise.
"""

from __future__ import annotations

from collections.abc import Sequence

from onnx_ir.passes import InPlacePass

from converters.passes.onnxruntime.doubles import ActivationsOfDoubles
from converters.passes.onnxruntime.float_weights import KeepFloatWeights
from converters.passes.onnxruntime.local_response import LRNOfFourDimensions
from converters.passes.onnxruntime.matmuls import MatMulOfVectorsAndEmptyMatrices
from converters.passes.onnxruntime.pads import KeepPads
from converters.passes.onnxruntime.recurrent import EmptyBatches
from converters.passes.onnxruntime.signs import SignInFloat32
from converters.passes.onnxruntime.splits import EmptySplit
from converters.passes.onnxruntime.strings import GatherOfStrings, PadOfStrings
from converters.passes.onnxruntime.sums import SumBeforeNormalization
from converters.passes.onnxruntime.transposed_matmuls import TransposeAfterCasts

__all__ = [
    "KeepFloatWeights",
    "KeepPads",
    "SumBeforeNormalization",
    "TransposeAfterCasts",
    "fusion_guards",
    "kernel_workarounds",
]


def kernel_workarounds() -> Sequence[InPlacePass]:
    """The passes that come first: nodes that ONNX Runtime has no kernel for, or a wrong one."""
    return [
        ActivationsOfDoubles(),
        LRNOfFourDimensions(),
        SignInFloat32(),
        EmptySplit(),
        MatMulOfVectorsAndEmptyMatrices(),
        EmptyBatches(),
        GatherOfStrings(),
        PadOfStrings(),
    ]


def fusion_guards(opset: int) -> Sequence[InPlacePass]:
    """The passes that come last: what ONNX Runtime must not fuse, for a model of an opset."""
    return [KeepPads(opset), TransposeAfterCasts(), KeepFloatWeights(), SumBeforeNormalization()]
