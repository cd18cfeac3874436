"""Operator versions between opset 11 and the newest opset that have the same meaning.

These versions only add element types, or an attribute or input that has no effect if omitted. A test compares this list and
the adapters with the schemas of the installed onnx.
"""

from __future__ import annotations

# The opsets with a version of the same meaning, above those that an adapter handles -> the operators.
SAME_MEANING: dict[tuple[int, ...], str] = {
    (12, 22): "MaxPool",
    (13,): """
        Abs ArgMax ArgMin Ceil Clip Concat Erf Exp Expand Floor Gather GatherElements GatherND Gemm Greater LRN Less
        Log MatMul Max Mean MeanVarianceNormalization Min Neg NonZero Reciprocal Sigmoid Sign Slice Sqrt Sum Tanh Tile
    """,
    (13, 14): "Add Div Mul Sub",
    (13, 14, 16, 19, 21, 23, 24, 25): "Identity",
    (13, 15): "Pow",
    (13, 16, 19, 21, 23, 24, 25): "If Loop",
    (13, 19, 21, 23, 24, 25): "Constant Size",
    (13, 19, 21, 23, 24, 25, 28): "Cast",
    (13, 20): "IsNaN",
    (13, 21, 23, 24, 25): "Flatten Transpose",
    (13, 22): "Dropout",
    (13, 28): "DepthToSpace Mod SpaceToDepth",
    (14,): "CumSum",
    (15,): "BatchNormalization",
    (16,): "GreaterOrEqual LeakyRelu LessOrEqual PRelu Where",
    (16, 19, 21, 23, 24, 25): "Scan",
    (18, 22): "LpPool",
    (19, 21, 23, 24, 25): "CastLike Reshape Shape",
    (20,): "IsInf ReduceMax ReduceMin",
    (20, 21, 23, 24, 25): "ConstantOfShape",
    (21,): "QLinearMatMul",
    (21, 23, 24, 25): "Pad Squeeze Unsqueeze",
    (22,): """
        Acos Acosh Asin Asinh Atan Atanh AveragePool Bernoulli Conv ConvTranspose Cos Cosh DeformConv Det Elu EyeLike
        GRU GlobalAveragePool GlobalLpPool GlobalMaxPool GridSample HardSigmoid HardSwish InstanceNormalization LSTM
        LpNormalization MaxRoiPool MaxUnpool Mish Multinomial RNN RandomNormal RandomNormalLike RandomUniform
        RandomUniformLike RoiAlign Round Selu Sin Sinh Softplus Softsign Tan ThresholdedRelu
    """,
    (23, 24, 25, 28): "QuantizeLinear",
    (24,): "SplitToSequence TopK",
    (24, 25, 28): "DequantizeLinear",
    (27,): "Range",
    (28,): "BitShift Celu Compress Einsum OneHot ReduceLogSum ReduceLogSumExp ReverseSequence Unique",
}

# Operators after opset 11 that are not emitted. Opsets below their first version reject them.
NOT_EMITTED = """
    AffineGrid BitCast BlackmanWindow CausalConvWithState CenterCropPad CumProd HammingWindow HannWindow
    ImageDecoder LinearAttention MelWeightMatrix NegativeLogLikelihoodLoss Optional OptionalGetElement
    OptionalHasElement RegexFullMatch STFT SequenceMap SoftmaxCrossEntropyLoss
    StringConcat StringSplit SwiGLU TensorScatter
"""

# Operators that passes emit last, and only for opsets that have them.
EMITTED_LAST = "Attention RMSNormalization RotaryEmbedding Swish"


def same_versions() -> dict[str, tuple[int, ...]]:
    """Return operator -> the opsets with a version of the same meaning."""
    return {operator: opsets for opsets, operators in SAME_MEANING.items() for operator in operators.split()}
