"""Rewrites for targets: equivalent subgraphs that a target supports. `converters.targets` selects them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Literal

from onnx_ir.passes import InPlacePass

from converters.passes.spellings.arg_max import TopKToArgMax
from converters.passes.spellings.assertions import CheckShapes
from converters.passes.spellings.attributes import RemoveDefaults, StatePadModes
from converters.passes.spellings.bags import BagsByMatMul
from converters.passes.spellings.binary import BinaryOperators
from converters.passes.spellings.booleans import RemoveBooleanConstants, RemoveByteConstants, SelectedNumbers
from converters.passes.spellings.comparisons import ComparedNumbers, EqualShapes
from converters.passes.spellings.constant_indices import ComputedIndices, ConstantIndices
from converters.passes.spellings.copied_products import CopiedProducts, GatheredCopies
from converters.passes.spellings.cubes import MulToPow
from converters.passes.spellings.detections import RegionsByMatMul, ScaledRegions, SuppressionBySteps
from converters.passes.spellings.expanded_resize import ExpandBeforeResize
from converters.passes.spellings.few_dimensions import MergedElements, MergedLines
from converters.passes.spellings.float_biases import FloatBiases
from converters.passes.spellings.float_products import FloatProducts
from converters.passes.spellings.forward_gru import ForwardGRU
from converters.passes.spellings.fused_attention import BiasedAttention
from converters.passes.spellings.fusions import UnfusedRMSNormalization, WholeAddends
from converters.passes.spellings.instance_normalization import InstanceNormalization4D
from converters.passes.spellings.integer_powers import RoundIntegerPowers
from converters.passes.spellings.jax_forms import (
    ConvForConvTranspose,
    ExpandedMovement,
    LessForGreater,
    NormalizedRows,
    SumsForNorms,
    TriangularSums,
)
from converters.passes.spellings.kernels import (
    AddedBiasOfVolumes,
    CroppedKernels,
    SplitGroups,
    StateKernels,
    UndilatedConvTranspose,
)
from converters.passes.spellings.leading_ones import RemoveLeadingOnes
from converters.passes.spellings.local_response import SumsForLRN
from converters.passes.spellings.logic import ArithmeticLogic, EqualBooleans
from converters.passes.spellings.lowered import LowerCol2Im, LowerDFT
from converters.passes.spellings.masks import LookedUpMasks
from converters.passes.spellings.matrices import MatricesOnly, TransposedBatches, VectorsToMatrices
from converters.passes.spellings.merged_directions import MergeDirections
from converters.passes.spellings.mnn_forms import CopiedVolumes, SeparateOutputs, StateWindows
from converters.passes.spellings.ncnn_forms import (
    BiasedNormalization,
    ColumnsByConv,
    ConcatForTile,
    ConvForSpaceToDepth,
    DepthToSpaceForTranspose,
    EluForSelu,
    MergedAxes,
    NormalizedLines,
    ReshapeBeforeExpand,
    SelectedParts,
    SeparateFunctions,
    SplitLastDimension,
    UniformConstants,
)
from converters.passes.spellings.negative_pads import NonnegativePads
from converters.passes.spellings.non_numbers import ComparedNonNumbers
from converters.passes.spellings.old_opencv import (
    ClippedNumbers,
    ComparedBooleans,
    ExpandedScalars,
    GatheredReflections,
    IndicesInShape,
    IndicesOfRows,
    OperandsOfRows,
    ReflectedImages,
    ScatteredColumns,
    SingleUnsqueezes,
    TransposedConvolutionsOfImages,
    TruncatedQuotients,
)
from converters.passes.spellings.onnx2torch_forms import CopiedOutputs, FlatNonZero, OneRowOfNonZero
from converters.passes.spellings.order import SortByDepth
from converters.passes.spellings.overflow import ClippedTanh, ExpandedLogSoftmax, OddAsinh, StableSoftplus
from converters.passes.spellings.padding import (
    CountedPads,
    ExplicitPads,
    GatheredEdges,
    GatheredReflection,
    SlicedConvTranspose,
    SymmetricPads,
    SymmetricPads1D,
    UnpaddedPointwise,
)
from converters.passes.spellings.positive_scores import PositiveScores
from converters.passes.spellings.powers import ExpandedPowers
from converters.passes.spellings.qnn_angles import WrappedAngles
from converters.passes.spellings.qnn_forms import (
    ConcatenatedEnds,
    ConvForAveragePool,
    ExpandedSoftplus,
    FiveDimensions,
    FloorPooling,
    KernelsOfStrides,
    MaxBeforePad,
    PadBeforeConv,
    QuantizedMoves,
    ResizeOfHTP,
    ScalesOfQuantizations,
    SeparateActivations,
    SeparateQuantizations,
    SeparateTransposes,
    SumsOfProducts,
    WeightsOfFloatResults,
)
from converters.passes.spellings.qnn_functions import ArcTangents, BoundedAtan, BoundedExp, ExpandedSoftmax
from converters.passes.spellings.qnn_integers import (
    BytesThroughIntegers,
    ConcatenatedPads,
    ExactQuotients,
    SumsOfParts,
    UnequalTo0,
    WrappedBytes,
)
from converters.passes.spellings.qnn_normalization import NormalizedMatrices
from converters.passes.spellings.qnn_products import SeparateProducts
from converters.passes.spellings.random_numbers import UnseededRandomUniform
from converters.passes.spellings.recurrent_nan import AddedNaN, KeptNaN, KeptNaNOfFloat16, KeptNaNOfLSTM
from converters.passes.spellings.reductions import (
    ExtremesOfSingleAxes,
    MeansForSums,
    PairsOfReducedAxes,
    ReducedNumbers,
    ReshapedScalars,
)
from converters.passes.spellings.remainders import AbsoluteRemainders, ModToDiv, WholeDividends
from converters.passes.spellings.reshapes import StatedDimensions, StaticReshape
from converters.passes.spellings.residuals import ExpandedResiduals, SubtractedBiases, SubtractedResiduals
from converters.passes.spellings.resize_matrices import (
    ResizeByMatrices,
    ResizeOfImages,
    ResizeOfNcnn,
    ResizeOfOpenCV4,
    ResizeOfOpenCV5,
    ResizeOfTinygrad,
    ResizeOfTract,
    ResizeOfTVM,
)
from converters.passes.spellings.rknn_forms import SelectedInt64, SlicedProducts
from converters.passes.spellings.rounding import RoundToEven, TruncatedIntegers
from converters.passes.spellings.rows import RowsOfMatrices, UncheckedRows
from converters.passes.spellings.sampling import GridSampleToGather, NearestGridSampleToGather
from converters.passes.spellings.scalars import ScalarsToVectors
from converters.passes.spellings.scattering import LastOfEqualIndices, ScatterWithinData
from converters.passes.spellings.selected_branches import SelectedBranches
from converters.passes.spellings.selected_iterations import SelectedIterations
from converters.passes.spellings.separate_constants import SeparateConstants
from converters.passes.spellings.signs import ComparedSigns, Signs, SignsOfIntegers
from converters.passes.spellings.single_elements import DecomposeInstanceNormalization
from converters.passes.spellings.slices import BoundedSlices, ReversedSliceToGather, StridedSliceToGather
from converters.passes.spellings.slopes import ChannelSlopes
from converters.passes.spellings.softmax import LastAxisSoftmax
from converters.passes.spellings.squares import PowToMul
from converters.passes.spellings.states import NameLastStates
from converters.passes.spellings.tinygrad_forms import IndicesOfPlanes, PositiveAxes, ScatteredRows, StrictComparisons
from converters.passes.spellings.topk import ReversedTopK, SortedTopK
from converters.passes.spellings.tract_forms import CountedOutputs, CountedSlices, UnnamedDimensions, WideSizes
from converters.passes.spellings.unfused import SeparatePatterns
from converters.passes.spellings.unrolled import UnrolledForms, UnrolledLoops, UnrolledRecurrence
from converters.passes.spellings.unsigned_casts import CastThroughIntegers, WrappedIntegers
from converters.passes.spellings.webgpu_forms import (
    GatheredElements,
    GatheredSlices,
    NarrowIntegers,
    NegatedAnd,
    NestedSplits,
    OddGroups,
    PaddedChannels,
    ScalarExponents,
    SeveralTransposedKernels,
    SlicesFromLast,
)

if TYPE_CHECKING:
    from converters.targets.target import Target

_FIRST: Mapping[str, Callable[[], InPlacePass]] = {
    "MatMul for bags": BagsByMatMul,
    "unseeded RandomUniform": UnseededRandomUniform,
    "sums of parts": SumsOfParts,
}
"""Spellings of operators that inlined functions or the workarounds for ONNX Runtime would replace."""

_SIMPLIFIED: Mapping[str, Callable[[], InPlacePass]] = {
    "4D InstanceNormalization": InstanceNormalization4D,
    "ArgMax": TopKToArgMax,
    "flat NonZero": FlatNonZero,
    "Div for Mod": ModToDiv,
    "whole dividends": WholeDividends,
    "absolute remainders": AbsoluteRemainders,
    "binary operators": BinaryOperators,
    "channel slopes": ChannelSlopes,
    "Cast through integers": CastThroughIntegers,
    "wrapped integers": WrappedIntegers,
    "positive scores": PositiveScores,
    "compared numbers": ComparedNumbers,
    "compared non-numbers": ComparedNonNumbers,
    "equal shapes": EqualShapes,
    "Floor for Round": RoundToEven,
    "Gather for reversed Slice": ReversedSliceToGather,
    "Gather for strided Slice": StridedSliceToGather,
    "expanded LogSoftmax": ExpandedLogSoftmax,
    "expanded Pow": ExpandedPowers,
    "Elu for Selu": EluForSelu,
    "expanded Resize": ExpandBeforeResize,
    "explicit padding": ExplicitPads,
    "float biases": FloatBiases,
    "float32 products": FloatProducts,
    "last Softmax axis": LastAxisSoftmax,
    "last of equal indices": LastOfEqualIndices,
    "matrix operands": VectorsToMatrices,
    "matrices for vectors": MatricesOnly,
    "Mul for And": ArithmeticLogic,
    "Mul for squares": PowToMul,
    "wide sizes": WideSizes,
    "no defaults": RemoveDefaults,
    "no leading 1s": RemoveLeadingOnes,
    "no scalar constants": ScalarsToVectors,
    "odd Asinh": OddAsinh,
    "rounded integer Pow": RoundIntegerPowers,
    "several elements": DecomposeInstanceNormalization,
    "sorted TopK": SortedTopK,
    "reversed TopK": ReversedTopK,
    "static Reshape": StaticReshape,
    "stated dimensions": StatedDimensions,
    "counted padding": CountedPads,
    "cropped kernels": CroppedKernels,
    "split groups": SplitGroups,
    "symmetric padding": SymmetricPads,
    "symmetric 1D padding": SymmetricPads1D,
    "undilated ConvTranspose": UndilatedConvTranspose,
    "unfused RMS normalization": UnfusedRMSNormalization,
    "unpadded 1x1 kernels": UnpaddedPointwise,
    "Expand for scalars": ExpandedScalars,
    "scattering to columns": ScatteredColumns,
    "rows of indices": IndicesOfRows,
    "indices in shape": IndicesInShape,
    "Gather for reflection": GatheredReflections,
    "images for reflection": ReflectedImages,
    "2D ConvTranspose": TransposedConvolutionsOfImages,
    "MatMul for Resize": ResizeByMatrices,
    "Gather for Resize": ResizeOfOpenCV4,
    "Gather for nearest Resize": ResizeOfOpenCV5,
    "Gather for aligned Resize": ResizeOfTract,
    "Gather for unclear Resize": ResizeOfTVM,
    "Gather for inexact Resize": ResizeOfTinygrad,
    "rows for ScatterND": ScatteredRows,
    "positive axes": PositiveAxes,
    "strict comparisons": StrictComparisons,
    "Xor for Equal": EqualBooleans,
    "selected int64": SelectedInt64,
    "indices of planes": IndicesOfPlanes,
    "scaled regions": ScaledRegions,
    "Gather for GridSample": GridSampleToGather,
    "Gather for nearest GridSample": NearestGridSampleToGather,
    "MatMul for every Resize": ResizeOfImages,
    "MatMul for DFT": LowerDFT,
    "ConvTranspose for Col2Im": LowerCol2Im,
    "bounded Slice": BoundedSlices,
    "Concat for Tile": ConcatForTile,
    "uniform constants": UniformConstants,
    "Reshape before Expand": ReshapeBeforeExpand,
    "counted Slice": CountedSlices,
    "Slice for negative pads": NonnegativePads,
    "scattering within data": ScatterWithinData,
    "forward GRU": ForwardGRU,
    "half-pixel Resize": ResizeOfNcnn,
    "Slice for Gather": ConstantIndices,
    "unchecked rows": UncheckedRows,
    "rows of matrices": RowsOfMatrices,
    "Conv for SpaceToDepth": ConvForSpaceToDepth,
    "normalized lines": NormalizedLines,
    "DepthToSpace for Transpose": DepthToSpaceForTranspose,
    "Reshape for scalars": ReshapedScalars,
    "looked-up masks": LookedUpMasks,
    "biased normalization": BiasedNormalization,
    "Split before Transpose": SplitLastDimension,
    "Slice before Transpose": SelectedParts,
    "Conv for im2col": ColumnsByConv,
    "merged axes": MergedAxes,
    "narrow integers": NarrowIntegers,
    "Gather for integer Slice": GatheredSlices,
    "Slice from the last element": SlicesFromLast,
    "Gather for integer GatherElements": GatheredElements,
    "And for Or": NegatedAnd,
    "expanded Sign": Signs,
    "compared Sign": ComparedSigns,
    "signs of integers": SignsOfIntegers,
    "asymmetric Resize": ResizeOfHTP,
    "floor pooling": FloorPooling,
    "Conv for ConvTranspose": ConvForConvTranspose,
    "Conv for AveragePool": ConvForAveragePool,
    "Pad before Conv": PadBeforeConv,
    "Gather for edges": GatheredEdges,
    "Gather for every reflection": GatheredReflection,
    "Concat for ends": ConcatenatedEnds,
    "Concat for integer Pad": ConcatenatedPads,
    "Atan for Acos": ArcTangents,
    "Where for If": SelectedBranches,
    "Where for Loop": SelectedIterations,
    "wrapped angles": WrappedAngles,
    "expanded Softmax": ExpandedSoftmax,
    "five dimensions": FiveDimensions,
    "kernels of strides": KernelsOfStrides,
    "merged elements": MergedElements,
    "merged lines": MergedLines,
    "weights of float results": WeightsOfFloatResults,
    "normalized rows": NormalizedRows,
    "expanded Tile": ExpandedMovement,
    "MatMul for CumSum": TriangularSums,
    "MatMul for float CumSum": SumsOfProducts,
    "ReduceSum for norms": SumsForNorms,
    "MatMul for NonMaxSuppression": SuppressionBySteps,
    "MatMul for RoiAlign": RegionsByMatMul,
    "sums for LRN": SumsForLRN,
    "NaN of recurrence": KeptNaN,
    "NaN of LSTM": KeptNaNOfLSTM,
    "NaN of float16": KeptNaNOfFloat16,
    "added NaN": AddedNaN,
    "unrolled Loop": UnrolledLoops,
    "unrolled recurrence": UnrolledRecurrence,
    "unrolled forms of recurrence": UnrolledForms,
}
"""Spellings before the last simplification."""

_NEWER: Mapping[str, Callable[[], InPlacePass]] = {
    "normalized matrices": NormalizedMatrices,
}
"""Spellings that emit operators of opsets after the builder's, which other passes do not know."""

_LAST: Mapping[str, Callable[[], InPlacePass]] = {
    "one row of NonZero": OneRowOfNonZero,
    "copied outputs": CopiedOutputs,
    "assertions by Reshape": CheckShapes,
    "Pow for cubes": MulToPow,
    "clipped Tanh": ClippedTanh,
    "last states": NameLastStates,
    "transposed batches": TransposedBatches,
    "no boolean constants": RemoveBooleanConstants,
    "no byte constants": RemoveByteConstants,
    "no named dimensions": UnnamedDimensions,
    "reduced numbers": ReducedNumbers,
    "counted outputs": CountedOutputs,
    "extremes of single axes": ExtremesOfSingleAxes,
    "separate functions": SeparateFunctions,
    "pairs of reduced axes": PairsOfReducedAxes,
    "sorted by depth": SortByDepth,
    "stable Softplus": StableSoftplus,
    "stated kernels": StateKernels,
    "stated modes": StatePadModes,
    "truncated integers": TruncatedIntegers,
    "Greater for Cast": ComparedBooleans,
    "rows of operands": OperandsOfRows,
    "float limits": ClippedNumbers,
    "sliced ConvTranspose": SlicedConvTranspose,
    "selected numbers": SelectedNumbers,
    "Reshape for Unsqueeze": SingleUnsqueezes,
    "truncated quotients": TruncatedQuotients,
    "separate constants": SeparateConstants,
    "whole residuals": ExpandedResiduals,
    "Sub for residuals of volumes": SubtractedResiduals,
    "unfused GroupNormalization": SubtractedBiases,
    "whole addends": WholeAddends,
    "separate patterns": SeparatePatterns,
    "biased attention": BiasedAttention,
    "computed indices": ComputedIndices,
    "merged directions": MergeDirections,
    "ReduceMean for ReduceSum": MeansForSums,
    "copied products": CopiedProducts,
    "Gather for Expand": GatheredCopies,
    "separate activations": SeparateActivations,
    "separate Transposes": SeparateTransposes,
    "separate products": SeparateProducts,
    "expanded Softplus": ExpandedSoftplus,
    "bounded Exp": BoundedExp,
    "bounded Atan": BoundedAtan,
    "quantized moves": QuantizedMoves,
    "scales of quantizations": ScalesOfQuantizations,
    "separate quantizations": SeparateQuantizations,
    "scalar exponents": ScalarExponents,
    "padded channels": PaddedChannels,
    "nested Split": NestedSplits,
    "Slice for Split": SlicedProducts,
    "odd groups": OddGroups,
    "several transposed kernels": SeveralTransposedKernels,
    "bytes through integers": BytesThroughIntegers,
    "wrapped bytes": WrappedBytes,
    "exact quotients": ExactQuotients,
    "Equal for Cast": UnequalTo0,
    "Max before Pad": MaxBeforePad,
    "Less for Greater": LessForGreater,
    "added bias of volumes": AddedBiasOfVolumes,
    "stated windows": StateWindows,
    "copied volumes": CopiedVolumes,
    "separate outputs": SeparateOutputs,
}
"""Spellings that simplification or the removal of unused values would revert, or of forms that older opsets need."""

Stage = Literal["first", "simplified", "newer", "last"]
"""Before functions are inlined, before the last simplification, directly after it, and at the opset of the file."""

_STAGES: Mapping[Stage, Mapping[str, Callable[[], InPlacePass]]] = {
    "first": _FIRST,
    "simplified": _SIMPLIFIED,
    "newer": _NEWER,
    "last": _LAST,
}

SPELLINGS: Mapping[str, Callable[[], InPlacePass]] = {**_FIRST, **_SIMPLIFIED, **_NEWER, **_LAST}


def spelling_passes(target: Target, stage: Stage = "simplified", *, newest: int | None = None) -> list[InPlacePass]:
    """Return the passes for a target's spellings of a stage.

    Args:
        target: the target.
        stage: when the passes run.
        newest: the newest opset of operators that they may emit; by default the target's.
    """
    of_stage = _STAGES[stage]
    passes = [of_stage[name]() for name in target.spellings if name in of_stage]
    for step in passes:
        if isinstance(step, UnrolledForms):
            step.limits = target.limits
            step.lacks = [name for name in step.operators if not target.has(name)]
        if isinstance(step, NormalizedMatrices):
            step.newest = newest or target.opsets[1]
    return passes
