"""ncnn, through pnnx."""

from __future__ import annotations

from dataclasses import replace

from converters.targets import limits
from converters.targets.engines.common import COMMON, COMPILED

_NOT_IN_NCNN = """
    And ArgMax CumSum Equal GatherElements Greater GreaterOrEqual IsInf IsNaN Less LessOrEqual NonMaxSuppression Not Or
    ScatterND Selu Tile TopK Where Xor
"""
NCNN = replace(
    COMPILED,
    name="ncnn",
    title="ncnn (through pnnx)",
    evidence="ncnn and pnnx of 2026",
    opsets=(11, 17),  # pnnx ignores reductions along one axis that is an input, as those of opset 18 are
    lacks=dict.fromkeys(_NOT_IN_NCNN.split(), ""),
    limits=(
        limits.integers,
        limits.padded_integers,
        limits.recurrent,
        limits.reset_before,
        limits.several_sequences,
        limits.uneven_padding,
        limits.smoothed_images,
        limits.stated_shape,
        limits.remainders,
        limits.nearest_samples,
        limits.reflected_samples,
        limits.casts_of_integers,
        limits.computed_factors,
        limits.many_dimensions,
        limits.unsqueezed_volumes,
        limits.computed_powers,
        limits.constant_places,
        limits.dilated_maxima,
    ),
    spellings=(
        *COMMON,
        "unrolled forms of recurrence",
        "4D InstanceNormalization",
        "MatMul for DFT",
        "expanded LogSoftmax",
        "stable Softplus",
        "stated modes",
        "explicit padding",
        "symmetric padding",
        "half-pixel Resize",
        "Conv for im2col",
        "Slice before Transpose",
        "Gather for strided Slice",
        "bounded Slice",
        "Concat for Tile",
        "uniform constants",
        "Reshape before Expand",
        "unchecked rows",
        "looked-up masks",
        "rows of matrices",
        "Slice for Gather",
        "merged directions",
        "ReduceMean for ReduceSum",
        "channel slopes",
        "Conv for SpaceToDepth",
        "DepthToSpace for Transpose",
        "Split before Transpose",
        "merged axes",
        "normalized lines",
        "biased normalization",
        "MatMul for CumSum",
        "Slice for negative pads",
        "Elu for Selu",
        "expanded Pow",
        "extremes of single axes",
        "separate functions",
        "sliced ConvTranspose",
    ),
    command="`pnnx model.onnx inputshape=[1,3,224,224]`",
)
