"""TensorRT."""

from __future__ import annotations

from converters.targets.target import Target

_NOT_IN_TENSORRT = """
    BitShift Compress ConcatFromSequence ConvInteger Det DynamicQuantizeLinear MatMulInteger MaxRoiPool MaxUnpool Multinomial
    QLinearConv QLinearMatMul SequenceAt SequenceConstruct SequenceEmpty SequenceErase SequenceInsert SequenceLength
    SplitToSequence StringNormalizer TfIdfVectorizer Unique
"""
TENSORRT = Target(
    "tensorrt",
    "NVIDIA's TensorRT",
    "the operators that onnx-tensorrt lists",
    opsets=(13, 21),
    lacks=dict.fromkeys(_NOT_IN_TENSORRT.split(), ""),
    spellings=("sorted TopK", "static Reshape", "no leading 1s"),
    command="`trtexec --onnx=model.onnx`",
)
