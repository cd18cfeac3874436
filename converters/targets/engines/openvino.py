"""OpenVINO's frontend for ONNX."""

from __future__ import annotations

from converters.targets import limits
from converters.targets.target import Target

_NOT_IN_OPENVINO = """
    Bernoulli BitCast ConcatFromSequence CumProd DeformConv Det MaxUnpool MelWeightMatrix RegexFullMatch SequenceConstruct
    SequenceErase SequenceInsert SequenceLength SplitToSequence StringConcat StringNormalizer StringSplit TfIdfVectorizer
"""
OPENVINO = Target(
    "openvino",
    "OpenVINO's ONNX frontend",
    "openvino 2026.4.1",
    opsets=(11, 19),  # it ignores the axis of DFT 20
    quantized="qdq",
    lacks=dict.fromkeys(_NOT_IN_OPENVINO.split(), ""),
    limits=(limits.indices_with_auto_pad,),
    spellings=("unseeded RandomUniform", "matrix operands", "sorted TopK", "static Reshape"),
    command='`openvino.Core().read_model("model.onnx")`',
)
