"""MNN."""

from __future__ import annotations

from converters.targets import limits
from converters.targets.assumptions import TIES
from converters.targets.engines.common import COMMON
from converters.targets.target import Target

_NOT_IN_MNN = """
    Bernoulli BlackmanWindow ConvInteger DFT DeformConv HammingWindow HannWindow Hardmax IsInf IsNaN MatMulInteger
    MelWeightMatrix Multinomial QLinearConv QLinearMatMul StringNormalizer TfIdfVectorizer
"""
MNN = Target(
    "mnn",
    "MNN",
    "MNN 3.6",
    # It uses RoiAlign-10 with the coordinates of version 16, and ignores the axes of ReduceL1, ReduceL2, ReduceSumSquare and
    # ReduceLogSumExp 18.
    opsets=(16, 17),
    lacks=dict.fromkeys(_NOT_IN_MNN.split(), ""),
    limits=(
        limits.recurrent,
        limits.reset_before,
        limits.rounded_up,
        limits.cubic_centers,
        limits.cubic_samples,
        limits.reflected_samples,
        limits.nearest_samples,
        limits.indices_of_maxima,
        limits.counted_padding,
        limits.uneven_padding,
        limits.last_windows,
        limits.three_dimensional,
        limits.pooled_volumes,
        limits.dilated_maxima,
        limits.transposed_products,
        limits.stated_shape,
        limits.reductions,
        limits.blocks,
        limits.negative_indices,
        limits.negative_pads,
        limits.diagonals,
        limits.several_operands,
        limits.untested_branches,
        limits.largest_in_branches,
        limits.stacked_iterations,
    ),
    assumptions=(TIES,),
    control_flow=frozenset(("If", "Loop")),
    spellings=(
        *COMMON,
        "unrolled forms of recurrence",
        "channel slopes",
        "symmetric padding",
        "explicit padding",
        "absolute remainders",
        "Gather for nearest GridSample",
        "compared non-numbers",
        "reduced numbers",
        "compared numbers",
        "equal shapes",
        "Floor for Round",
        "Gather for reversed Slice",
        "last Softmax axis",
        "last states",
        "stable Softplus",
        "added bias of volumes",
        "stated windows",
        "copied volumes",
        "separate outputs",
        "unfused RMS normalization",
        "whole addends",
        "ConvTranspose for Col2Im",
        "MatMul for DFT",
        "MatMul for Resize",
        "Slice for negative pads",
    ),
    command="`mnnconvert -f ONNX --modelFile model.onnx --MNNModel model.mnn --bizCode x`",
)
