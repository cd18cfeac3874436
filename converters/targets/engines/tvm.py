"""Apache TVM."""

from __future__ import annotations

from dataclasses import replace

from converters.targets import limits
from converters.targets.engines.common import COMMON, COMPILED
from converters.targets.target import SELECTIONS

_NOT_IN_TVM = """
    Bernoulli BitCast BlackmanWindow CenterCropPad Celu Col2Im ConvInteger CumProd DFT DeformConv Det GRU HammingWindow
    HannWindow LSTM LpNormalization MelWeightMatrix Multinomial NegativeLogLikelihoodLoss QLinearConv QLinearMatMul RNN
    RandomNormal RandomNormalLike RandomUniform RandomUniformLike RegexFullMatch ReverseSequence STFT
    SoftmaxCrossEntropyLoss StringConcat StringNormalizer StringSplit TfIdfVectorizer
"""
TVM = replace(
    COMPILED,
    name="tvm",
    title="Apache TVM",
    evidence="apache-tvm 0.27",
    opsets=(13, 21),  # a Resize has no sizes if it has empty scales, as those of opset 11 have
    lacks=dict.fromkeys(_NOT_IN_TVM.split(), ""),
    limits=(
        limits.computed_axis,
        limits.computed_dimensions,
        limits.computed_from_dimensions,
        limits.computed_targets,
        limits.free_scales,
        limits.indices_of_maxima,
        limits.small_floats,
        limits.unknown_dimensions,
    ),
    spellings=(
        *SELECTIONS,
        "unrolled recurrence",
        *COMMON,
        "MatMul for DFT",
        "ConvTranspose for Col2Im",
        "Gather for unclear Resize",
        "compared Sign",
        "rounded integer Pow",
        "compared non-numbers",
        "matrix operands",
        "reduced numbers",
        "scaled regions",
        "Xor for Equal",
    ),
    command="`tvm.relax.frontend.onnx.from_onnx(onnx.load(...))`",
)
