"""PyTorch, through onnx2torch."""

from __future__ import annotations

from converters.targets import limits
from converters.targets.assumptions import TIES
from converters.targets.engines.common import COMMON
from converters.targets.target import SELECTIONS, Target

_NOT_IN_ONNX2TORCH = """
    Acosh Asinh Atanh Bernoulli BitShift Compress ConcatFromSequence ConvInteger Cosh DequantizeLinear Det
    DynamicQuantizeLinear GRU GlobalLpPool GlobalMaxPool GridSample Hardmax LSTM LpNormalization LpPool MatMulInteger
    MaxRoiPool MaxUnpool Multinomial OneHot QLinearConv QLinearMatMul QuantizeLinear RNN RandomNormal RandomNormalLike
    RandomUniform RandomUniformLike ReverseSequence STFT ScatterElements SequenceAt SequenceConstruct SequenceEmpty
    SequenceErase SequenceInsert SequenceLength Shrink Sinh Size SpaceToDepth SplitToSequence StringNormalizer
    TfIdfVectorizer ThresholdedRelu Trilu Unique
"""
ONNX2TORCH = Target(
    "onnx2torch",
    "PyTorch (through onnx2torch)",
    "onnx2torch 1.5.15",
    opsets=(13, 15),  # it has no GreaterOrEqual of opset 16
    lacks=dict.fromkeys(_NOT_IN_ONNX2TORCH.split(), ""),
    limits=(
        limits.wide_unsigned,
        limits.indices_of_maxima,
        limits.rows_of_elements,
        limits.free_nearest_scales,
        limits.computed_kernels,
    ),
    assumptions=(TIES,),
    control_flow=frozenset(),
    spellings=(
        *SELECTIONS,
        "unrolled recurrence",
        *COMMON,
        "wrapped integers",
        "ArgMax",
        "flat NonZero",
        "one row of NonZero",
        "Gather for nearest Resize",
        "Gather for GridSample",
        "symmetric padding",
        "sliced ConvTranspose",
        "copied outputs",
    ),
    command='`onnx2torch.convert("model.onnx")`',
)
