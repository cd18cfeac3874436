"""Workarounds for ONNX Runtime's CPU kernels and optimizations: one module per quirk, with the release that has it.

Rules emit the plain form. Targets other than ONNX Runtime do not use these passes. When a release fixes a quirk, its module
can be deleted.

`kernel_workarounds` run first, on the emitted nodes. `fusion_guards` run last, on the graph that ONNX Runtime would
optimize.
"""

from __future__ import annotations

from collections.abc import Sequence

from onnx_ir.passes import InPlacePass

from converters.passes.onnxruntime.block_layouts import KeepBlocks
from converters.passes.onnxruntime.captured_values import CopyCapturedValues
from converters.passes.onnxruntime.column_sums import SumsByProducts
from converters.passes.onnxruntime.depthwise import DepthwiseChannelsLast
from converters.passes.onnxruntime.direct_convolutions import DirectConvolutions
from converters.passes.onnxruntime.doubles import ActivationsOfDoubles
from converters.passes.onnxruntime.empty_instances import InstancesWithoutElements
from converters.passes.onnxruntime.float8 import CastToFloat8
from converters.passes.onnxruntime.float_weights import KeepFloatWeights
from converters.passes.onnxruntime.gathers import GatherRows
from converters.passes.onnxruntime.grids import SampleAnyPosition
from converters.passes.onnxruntime.line_convolutions import DepthwiseLines
from converters.passes.onnxruntime.local_response import LRNByShiftedSums, LRNOfFourDimensions
from converters.passes.onnxruntime.matmuls import MatMulOfVectorsAndEmptyMatrices
from converters.passes.onnxruntime.more_dimensions import ConstantsOfMoreDimensions
from converters.passes.onnxruntime.moved_images import StopMovedTransposes, StopMovedTransposesOfBodies
from converters.passes.onnxruntime.moved_outputs import CopyMovedOutputs
from converters.passes.onnxruntime.nearest_resizes import NearestByGather
from converters.passes.onnxruntime.pads import KeepPads
from converters.passes.onnxruntime.pixels_as_tokens import PixelsAsTokens
from converters.passes.onnxruntime.powers import PowersInDoubles
from converters.passes.onnxruntime.recurrent import EmptySequences, NaNOfSequences
from converters.passes.onnxruntime.reductions import ExactProducts, ExactSums, ExtremesOfNoBooleans
from converters.passes.onnxruntime.regions import RoiAlignOfNewerOpsets, RoiAlignOfNothing
from converters.passes.onnxruntime.remainders import ExactRemainders
from converters.passes.onnxruntime.resizes import ResizeByAxes
from converters.passes.onnxruntime.row_norms import NormsBySums
from converters.passes.onnxruntime.separate_weights import SeparateWeights
from converters.passes.onnxruntime.signs import SignInFloat32
from converters.passes.onnxruntime.slices import EndsOfBackwardSlices
from converters.passes.onnxruntime.slopes import PReluByProducts
from converters.passes.onnxruntime.small_factors import SmallFactorsFirst
from converters.passes.onnxruntime.softmaxes import SoftmaxByReductions
from converters.passes.onnxruntime.splits import EmptySplit
from converters.passes.onnxruntime.strings import GatherOfStrings, PadOfStrings
from converters.passes.onnxruntime.sums import SumBeforeNormalization
from converters.passes.onnxruntime.transposed_convolutions import EmptyTransposedConvolutions
from converters.passes.onnxruntime.transposed_matmuls import TransposeAfterCasts
from converters.passes.onnxruntime.transposed_splits import SplitBeforeTranspose
from converters.passes.onnxruntime.transposed_volumes import TransposedVolumes
from converters.passes.onnxruntime.transposes import MergeReshapes, TransposeInSteps
from converters.passes.onnxruntime.unique import UniqueOfEmptySlices
from converters.passes.onnxruntime.unsigned import ExtremesOfUnsigned, TopKOfUnsigned
from converters.passes.onnxruntime.zero_signs import SignsOfSelectedZeros
from converters.passes.workaround import Workarounds
from onnx_specops.building import OPSET

__all__ = [
    "ConstantsOfMoreDimensions",
    "CopyCapturedValues",
    "CopyMovedOutputs",
    "DepthwiseChannelsLast",
    "DepthwiseLines",
    "DirectConvolutions",
    "GatherRows",
    "InstancesWithoutElements",
    "KeepBlocks",
    "KeepFloatWeights",
    "KeepPads",
    "MergeReshapes",
    "NearestByGather",
    "NormsBySums",
    "PReluByProducts",
    "PixelsAsTokens",
    "ResizeByAxes",
    "SeparateWeights",
    "SignsOfSelectedZeros",
    "SmallFactorsFirst",
    "SoftmaxByReductions",
    "SplitBeforeTranspose",
    "StopMovedTransposes",
    "StopMovedTransposesOfBodies",
    "SumBeforeNormalization",
    "SumsByProducts",
    "TransposeAfterCasts",
    "TransposeInSteps",
    "TransposedVolumes",
    "forms_before_lowering",
    "fusion_guards",
    "kernel_workarounds",
]


def kernel_workarounds(opset: int = OPSET) -> Sequence[InPlacePass]:
    """Return the first passes, for nodes without a kernel in ONNX Runtime or with an incorrect one, for a model of the given
    opset.
    """
    return [
        ActivationsOfDoubles(),
        LRNOfFourDimensions(),
        SignInFloat32(),
        SignsOfSelectedZeros(),
        EmptySplit(),
        Workarounds(
            CastToFloat8(),
            MatMulOfVectorsAndEmptyMatrices(),
            EmptySequences(),
            GatherOfStrings(),
            PadOfStrings(),
            ExactSums(),
            ExtremesOfNoBooleans(),
            ExtremesOfUnsigned(),
            ExactProducts(),
            TopKOfUnsigned(),
            UniqueOfEmptySlices(),
            RoiAlignOfNewerOpsets(opset),
            RoiAlignOfNothing(),
            EndsOfBackwardSlices(),
            EmptyTransposedConvolutions(),
            ExactRemainders(),
            PowersInDoubles(),
            SampleAnyPosition(),
        ),
    ]


def forms_before_lowering(opset: int, *, is_for_cpu: bool = True) -> Sequence[InPlacePass]:
    """Return those of `fusion_guards` whose nodes an older opset has in other forms."""
    return [InstancesWithoutElements(), *([NaNOfSequences(branches=is_for_cpu)] if opset < 13 else ())]


def fusion_guards(opset: int, *, is_for_cpu: bool = True) -> Sequence[InPlacePass]:
    """Return the last passes, which prevent incorrect or slow fusions of ONNX Runtime, for a model of the given opset.

    For devices other than the CPU, there is no If, which waits for the device, and convolutions stay.
    """
    guards: list[InPlacePass] = [
        LRNByShiftedSums(),
        KeepPads(opset),
        TransposeAfterCasts(),
        KeepFloatWeights(),
        SumBeforeNormalization(),
        SmallFactorsFirst(),
        PReluByProducts(),
        ConstantsOfMoreDimensions(opset),
        PixelsAsTokens(),
        NearestByGather(),
        GatherRows(),
    ]
    if opset >= OPSET:  # the first with the plugin's kernels
        guards.append(DepthwiseChannelsLast())
    if opset >= 13:  # the first with axes as inputs of Unsqueeze
        guards += [DepthwiseLines(), NaNOfSequences(branches=is_for_cpu)]
    if opset >= 18:  # the first with axes as inputs of all reductions
        guards += [SoftmaxByReductions(), SumsByProducts(), NormsBySums(), SplitBeforeTranspose()]
    if opset >= OPSET:
        guards += [InstancesWithoutElements(), ResizeByAxes()]
    if is_for_cpu and opset >= OPSET:
        guards += [DirectConvolutions(), TransposedVolumes()]
    if is_for_cpu:
        guards += [
            Workarounds(StopMovedTransposes(opset), StopMovedTransposesOfBodies(opset)),
            KeepBlocks(),
            SeparateWeights(),
        ]
    return [*guards, TransposeInSteps(), MergeReshapes(), CopyMovedOutputs(), CopyCapturedValues()]
