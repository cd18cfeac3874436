"""Alternative spellings in ONNX that targets need. `converters.targets` selects them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Literal

from onnx_ir.passes import InPlacePass

from converters.passes.spellings.arg_max import TopKToArgMax
from converters.passes.spellings.assertions import CheckShapes
from converters.passes.spellings.attributes import RemoveDefaults, StatePadModes
from converters.passes.spellings.bags import BagsByMatMul
from converters.passes.spellings.binary import BinaryOperators
from converters.passes.spellings.booleans import RemoveBooleanConstants, RemoveByteConstants
from converters.passes.spellings.comparisons import ComparedNumbers, EqualShapes
from converters.passes.spellings.constant_indices import ComputedIndices, ConstantIndices
from converters.passes.spellings.copied_products import CopiedProducts, GatheredCopies
from converters.passes.spellings.cubes import MulToPow
from converters.passes.spellings.detections import RegionsByMatMul, SuppressionBySteps
from converters.passes.spellings.expanded_resize import ExpandBeforeResize
from converters.passes.spellings.float_biases import FloatBiases
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
from converters.passes.spellings.kernels import CroppedKernels, SplitGroups, StateKernels, UndilatedConvTranspose
from converters.passes.spellings.leading_ones import RemoveLeadingOnes
from converters.passes.spellings.local_response import SumsForLRN
from converters.passes.spellings.logic import ArithmeticLogic
from converters.passes.spellings.lowered import LowerCol2Im, LowerDFT
from converters.passes.spellings.masks import LookedUpMasks
from converters.passes.spellings.matrices import TransposedBatches, VectorsToMatrices
from converters.passes.spellings.merged_directions import MergeDirections
from converters.passes.spellings.ncnn_forms import (
    BiasedNormalization,
    ConvForSpaceToDepth,
    DepthToSpaceForTranspose,
    MergedAxes,
    NormalizedLines,
    SplitLastDimension,
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
    SelectedNumbers,
    SingleUnsqueezes,
    SlicedConvTranspose,
    TransposedConvolutionsOfImages,
    TruncatedQuotients,
)
from converters.passes.spellings.onnx2torch_forms import CopiedOutputs, FlatNonZero, OneRowOfNonZero
from converters.passes.spellings.order import SortByDepth
from converters.passes.spellings.overflow import ClippedTanh, ExpandedLogSoftmax, OddAsinh, StableSoftplus
from converters.passes.spellings.padding import CountedPads, ExplicitPads, SymmetricPads, SymmetricPads1D, UnpaddedPointwise
from converters.passes.spellings.qnn_forms import (
    ConvForAveragePool,
    ExpandedSoftplus,
    FiveDimensions,
    FloorPooling,
    PadBeforeConv,
    QuantizedMoves,
    ResizeOfHTP,
    ScalesOfQuantizations,
    SeparateActivations,
    WeightsOfFloatResults,
)
from converters.passes.spellings.random_numbers import UnseededRandomUniform
from converters.passes.spellings.recurrent_nan import AddedNaN, KeptNaN, KeptNaNOfLSTM
from converters.passes.spellings.reductions import MeansForSums, PairsOfReducedAxes, ReshapedScalars
from converters.passes.spellings.remainders import AbsoluteRemainders, ModToDiv, WholeDividends
from converters.passes.spellings.reshapes import StatedDimensions, StaticReshape
from converters.passes.spellings.residuals import ExpandedResiduals, SubtractedBiases, SubtractedResiduals
from converters.passes.spellings.resize_matrices import (
    ResizeByMatrices,
    ResizeOfImages,
    ResizeOfNcnn,
    ResizeOfOpenCV4,
    ResizeOfOpenCV5,
    ResizeOfTract,
)
from converters.passes.spellings.rounding import RoundToEven, TruncatedIntegers
from converters.passes.spellings.rows import RowsOfMatrices, UncheckedRows
from converters.passes.spellings.sampling import GridSampleToGather, NearestGridSampleToGather
from converters.passes.spellings.scalars import ScalarsToVectors
from converters.passes.spellings.scattering import LastOfEqualIndices, ScatterWithinData
from converters.passes.spellings.separate_constants import SeparateConstants
from converters.passes.spellings.single_elements import DecomposeInstanceNormalization
from converters.passes.spellings.slices import BoundedSlices, ReversedSliceToGather, StridedSliceToGather
from converters.passes.spellings.slopes import ChannelSlopes
from converters.passes.spellings.softmax import LastAxisSoftmax
from converters.passes.spellings.squares import PowToMul
from converters.passes.spellings.states import NameLastStates
from converters.passes.spellings.topk import SortedTopK
from converters.passes.spellings.tract_forms import CountedOutputs, ReducedNumbers, UnnamedDimensions, WideSizes
from converters.passes.spellings.unrolled import UnrolledForms, UnrolledLoops, UnrolledRecurrence
from converters.passes.spellings.unsigned_casts import CastThroughIntegers
from converters.passes.spellings.webgpu_forms import (
    ComparedSigns,
    GatheredElements,
    GatheredSlices,
    NarrowIntegers,
    NegatedAnd,
    ScalarExponents,
    Signs,
)

if TYPE_CHECKING:
    from converters.targets.target import Target

SPELLINGS: Mapping[str, Callable[[], InPlacePass]] = {
    "4D InstanceNormalization": InstanceNormalization4D,
    "ArgMax": TopKToArgMax,
    "flat NonZero": FlatNonZero,
    "one row of NonZero": OneRowOfNonZero,
    "copied outputs": CopiedOutputs,
    "assertions by Reshape": CheckShapes,
    "Div for Mod": ModToDiv,
    "whole dividends": WholeDividends,
    "absolute remainders": AbsoluteRemainders,
    "Pow for cubes": MulToPow,
    "binary operators": BinaryOperators,
    "channel slopes": ChannelSlopes,
    "Cast through integers": CastThroughIntegers,
    "clipped Tanh": ClippedTanh,
    "compared numbers": ComparedNumbers,
    "compared non-numbers": ComparedNonNumbers,
    "equal shapes": EqualShapes,
    "Floor for Round": RoundToEven,
    "Gather for reversed Slice": ReversedSliceToGather,
    "Gather for strided Slice": StridedSliceToGather,
    "expanded LogSoftmax": ExpandedLogSoftmax,
    "expanded Resize": ExpandBeforeResize,
    "explicit padding": ExplicitPads,
    "float biases": FloatBiases,
    "last Softmax axis": LastAxisSoftmax,
    "last of equal indices": LastOfEqualIndices,
    "last states": NameLastStates,
    "matrix operands": VectorsToMatrices,
    "transposed batches": TransposedBatches,
    "Mul for And": ArithmeticLogic,
    "Mul for squares": PowToMul,
    "no boolean constants": RemoveBooleanConstants,
    "no byte constants": RemoveByteConstants,
    "no named dimensions": UnnamedDimensions,
    "wide sizes": WideSizes,
    "reduced numbers": ReducedNumbers,
    "counted outputs": CountedOutputs,
    "no defaults": RemoveDefaults,
    "no leading 1s": RemoveLeadingOnes,
    "no scalar constants": ScalarsToVectors,
    "odd Asinh": OddAsinh,
    "pairs of reduced axes": PairsOfReducedAxes,
    "rounded integer Pow": RoundIntegerPowers,
    "several elements": DecomposeInstanceNormalization,
    "sorted by depth": SortByDepth,
    "sorted TopK": SortedTopK,
    "stable Softplus": StableSoftplus,
    "stated kernels": StateKernels,
    "stated modes": StatePadModes,
    "static Reshape": StaticReshape,
    "stated dimensions": StatedDimensions,
    "counted padding": CountedPads,
    "cropped kernels": CroppedKernels,
    "split groups": SplitGroups,
    "symmetric padding": SymmetricPads,
    "symmetric 1D padding": SymmetricPads1D,
    "truncated integers": TruncatedIntegers,
    "undilated ConvTranspose": UndilatedConvTranspose,
    "unfused RMS normalization": UnfusedRMSNormalization,
    "unpadded 1x1 kernels": UnpaddedPointwise,
    "Greater for Cast": ComparedBooleans,
    "Expand for scalars": ExpandedScalars,
    "scattering to columns": ScatteredColumns,
    "rows of indices": IndicesOfRows,
    "indices in shape": IndicesInShape,
    "rows of operands": OperandsOfRows,
    "float limits": ClippedNumbers,
    "Gather for reflection": GatheredReflections,
    "sliced ConvTranspose": SlicedConvTranspose,
    "selected numbers": SelectedNumbers,
    "Reshape for Unsqueeze": SingleUnsqueezes,
    "images for reflection": ReflectedImages,
    "2D ConvTranspose": TransposedConvolutionsOfImages,
    "truncated quotients": TruncatedQuotients,
    "MatMul for Resize": ResizeByMatrices,
    "Gather for Resize": ResizeOfOpenCV4,
    "Gather for nearest Resize": ResizeOfOpenCV5,
    "Gather for aligned Resize": ResizeOfTract,
    "Gather for GridSample": GridSampleToGather,
    "Gather for nearest GridSample": NearestGridSampleToGather,
    "MatMul for every Resize": ResizeOfImages,
    "MatMul for DFT": LowerDFT,
    "ConvTranspose for Col2Im": LowerCol2Im,
    "bounded Slice": BoundedSlices,
    "Slice for negative pads": NonnegativePads,
    "separate constants": SeparateConstants,
    "scattering within data": ScatterWithinData,
    "whole residuals": ExpandedResiduals,
    "Sub for residuals of volumes": SubtractedResiduals,
    "unfused GroupNormalization": SubtractedBiases,
    "forward GRU": ForwardGRU,
    "whole addends": WholeAddends,
    "biased attention": BiasedAttention,
    "half-pixel Resize": ResizeOfNcnn,
    "Slice for Gather": ConstantIndices,
    "computed indices": ComputedIndices,
    "unchecked rows": UncheckedRows,
    "rows of matrices": RowsOfMatrices,
    "merged directions": MergeDirections,
    "ReduceMean for ReduceSum": MeansForSums,
    "Conv for SpaceToDepth": ConvForSpaceToDepth,
    "normalized lines": NormalizedLines,
    "copied products": CopiedProducts,
    "DepthToSpace for Transpose": DepthToSpaceForTranspose,
    "Gather for Expand": GatheredCopies,
    "Reshape for scalars": ReshapedScalars,
    "looked-up masks": LookedUpMasks,
    "biased normalization": BiasedNormalization,
    "Split before Transpose": SplitLastDimension,
    "merged axes": MergedAxes,
    "narrow integers": NarrowIntegers,
    "Gather for integer Slice": GatheredSlices,
    "Gather for integer GatherElements": GatheredElements,
    "And for Or": NegatedAnd,
    "expanded Sign": Signs,
    "compared Sign": ComparedSigns,
    "separate activations": SeparateActivations,
    "expanded Softplus": ExpandedSoftplus,
    "asymmetric Resize": ResizeOfHTP,
    "floor pooling": FloorPooling,
    "Conv for ConvTranspose": ConvForConvTranspose,
    "Conv for AveragePool": ConvForAveragePool,
    "Pad before Conv": PadBeforeConv,
    "five dimensions": FiveDimensions,
    "quantized moves": QuantizedMoves,
    "scales of quantizations": ScalesOfQuantizations,
    "weights of float results": WeightsOfFloatResults,
    "scalar exponents": ScalarExponents,
    "normalized rows": NormalizedRows,
    "expanded Tile": ExpandedMovement,
    "Less for Greater": LessForGreater,
    "MatMul for CumSum": TriangularSums,
    "ReduceSum for norms": SumsForNorms,
    "MatMul for bags": BagsByMatMul,
    "unseeded RandomUniform": UnseededRandomUniform,
    "MatMul for NonMaxSuppression": SuppressionBySteps,
    "MatMul for RoiAlign": RegionsByMatMul,
    "sums for LRN": SumsForLRN,
    "NaN of recurrence": KeptNaN,
    "NaN of LSTM": KeptNaNOfLSTM,
    "added NaN": AddedNaN,
    "unrolled Loop": UnrolledLoops,
    "unrolled recurrence": UnrolledRecurrence,
    "unrolled forms of recurrence": UnrolledForms,
}

_FIRST = frozenset(("MatMul for bags", "unseeded RandomUniform"))
"""Spellings of operators of the domain, before their functions are inlined."""

_LAST = frozenset((
    "Greater for Cast", "Less for Greater", "Pow for cubes", "ReduceMean for ReduceSum", "Sub for residuals of volumes",
    "assertions by Reshape", "biased attention", "clipped Tanh", "computed indices", "copied products",
    "expanded Softplus", "Gather for Expand",
    "last states", "merged directions", "scalar exponents", "separate activations",
    "no boolean constants", "no byte constants", "float limits", "Reshape for Unsqueeze",
    "copied outputs", "one row of NonZero",
    "reduced numbers", "counted outputs", "no named dimensions", "sliced ConvTranspose", "selected numbers",
    "quantized moves", "scales of quantizations", "rows of operands", "separate constants",
    "pairs of reduced axes", "sorted by depth", "transposed batches",
    "stable Softplus",
    "stated kernels", "stated modes", "truncated integers", "truncated quotients", "unfused GroupNormalization",
    "whole addends", "whole residuals",
))  # fmt: skip
"""Spellings that simplification or the removal of unused values would revert, or of forms that older opsets need."""


Stage = Literal["first", "simplified", "last"]
"""Before functions are inlined, before the last simplification, and after it."""


def spelling_passes(target: Target, stage: Stage = "simplified") -> list[InPlacePass]:
    """Return the passes for a target's spellings of a stage."""
    passes = [SPELLINGS[name]() for name in target.spellings if _stage(name) == stage]
    for step in passes:
        if isinstance(step, UnrolledForms):
            step.limits = target.limits
    return passes


def _stage(name: str) -> Stage:
    return "first" if name in _FIRST else "last" if name in _LAST else "simplified"
