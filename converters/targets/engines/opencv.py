"""OpenCV's dnn module, versions 5 and 4."""

from __future__ import annotations

from dataclasses import replace

from converters.targets import limits
from converters.targets.engines.common import COMMON, COMPILED

_NOT_IN_OPENCV = """
    Bernoulli DeformConv Multinomial RNN RandomNormal RandomUniform RandomUniformLike ReverseSequence
"""
OPENCV = replace(
    COMPILED,
    name="opencv",
    title="OpenCV's dnn module",
    evidence="opencv-python-headless 5.0.0 and 4.14.0",
    opsets=(11, 19),  # it ignores the axis of DFT 20
    lacks=dict.fromkeys(_NOT_IN_OPENCV.split(), ""),
    limits=(
        limits.recurrent,
        limits.free_scales,
        limits.cubic_samples,
        limits.indices_of_maxima,
        limits.counted_padding,
        limits.last_windows,
        limits.stated_shape,
        limits.negative_thresholds,
        limits.absent_thresholds,
        limits.long_transpositions,
        limits.products_of_integers,
        limits.long_unsigned_casts,
        limits.untested_branches,
        limits.images_in_branches,
    ),
    control_flow=frozenset(("If",)),
    spellings=(
        "Where for Loop",
        *COMMON,
        "unrolled forms of recurrence",
        "float32 products",
        "channel slopes",
        "wrapped integers",
        "positive scores",
        "explicit padding",
        "symmetric 1D padding",
        "symmetric padding",
        "undilated ConvTranspose",
        "unpadded 1x1 kernels",
        "split groups",
        "pairs of reduced axes",
        "Reshape for scalars",
        "truncated integers",
        "whole addends",
        "no defaults",
        "clipped Tanh",
        "expanded LogSoftmax",
        "stable Softplus",
        "expanded Resize",
        "Gather for nearest Resize",
        "4D InstanceNormalization",
        "Pow for cubes",
        "biased attention",
        "sorted by depth",
        "last states",
        "Mul for And",
        "selected numbers",
        "ConvTranspose for Col2Im",
        "Slice for negative pads",
        "scattering within data",
        "unfused GroupNormalization",
        "whole residuals",
        "stated dimensions",
        "transposed batches",
        "separate patterns",
        "matrices for vectors",
        "signs of integers",
    ),
    command='`cv2.dnn.readNetFromONNX("model.onnx")`',
)
_NOT_IN_OPENCV4 = """
    And Bernoulli BitShift BitwiseAnd BitwiseNot BitwiseOr BitwiseXor BlackmanWindow CastLike CenterCropPad Col2Im
    Compress ConcatFromSequence ConvInteger DFT DeformConv Det EyeLike GatherND GlobalLpPool GridSample
    HammingWindow HannWindow Hardmax IsInf IsNaN LpNormalization LpPool MatMulInteger MaxRoiPool
    MeanVarianceNormalization MelWeightMatrix Multinomial NegativeLogLikelihoodLoss NonMaxSuppression NonZero OneHot
    Or RNN RandomNormal RandomUniform RandomUniformLike ReverseSequence RoiAlign STFT Size SoftmaxCrossEntropyLoss
    SplitToSequence StringNormalizer TfIdfVectorizer Trilu Unique Xor
"""
OPENCV4 = replace(
    OPENCV,
    name="opencv4",
    title="OpenCV 4's dnn module",
    evidence="opencv-python-headless 4.14.0",
    lacks=dict.fromkeys(_NOT_IN_OPENCV4.split(), ""),
    limits=(
        *OPENCV.limits,
        limits.dilated_maxima,
        limits.scalars,
        limits.computed_states,
        limits.lines_of_updates,
        limits.even_windows,
        limits.dilated_means,
        limits.padded_integers,
        limits.small_floats,
        limits.floored_remainders,
        limits.computed_axes,
        limits.transposed_volumes,
    ),
    control_flow=frozenset(),
    spellings=(
        "Where for If",
        "compared non-numbers",
        "scattering to columns",
        *OPENCV.spellings,
        "Expand for scalars",
        "2D ConvTranspose",
        "Div for Mod",
        "Greater for Cast",
        "Gather for GridSample",
        "Gather for Resize",
        "MatMul for DFT",
        "Sub for residuals of volumes",
        "forward GRU",
        "images for reflection",
        "Gather for reflection",
        "sliced ConvTranspose",
        "rows of indices",
        "indices in shape",
        "Gather for reversed Slice",
        "Reshape for Unsqueeze",
        "float limits",
        "truncated quotients",
        "rows of operands",
        "separate constants",
        "counted padding",
        "cropped kernels",
        "no byte constants",
    ),
)
