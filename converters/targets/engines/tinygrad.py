"""tinygrad."""

from __future__ import annotations

from dataclasses import replace

from converters.targets import limits
from converters.targets.assumptions import NUMBERS_ONLY
from converters.targets.engines.common import COMPILED
from converters.targets.target import SELECTIONS

_NOT_IN_TINYGRAD = """
    Bernoulli BitCast BitShift Col2Im ConcatFromSequence CumProd DFT DeformConv Det GRU GlobalLpPool GridSample LSTM LpPool
    MaxRoiPool MelWeightMatrix Multinomial NonMaxSuppression RNN RandomNormal RandomNormalLike RandomUniform
    RandomUniformLike RegexFullMatch ReverseSequence RoiAlign STFT SequenceAt SequenceConstruct SequenceEmpty SequenceErase
    SequenceInsert SequenceLength SplitToSequence StringConcat StringNormalizer StringSplit TfIdfVectorizer Unique
"""
TINYGRAD = replace(
    COMPILED,
    name="tinygrad",
    title="tinygrad",
    evidence="tinygrad 0.14",
    lacks=dict.fromkeys(_NOT_IN_TINYGRAD.split(), ""),
    limits=(
        limits.indices_of_tensors,
        limits.scattered_in_place,
        limits.smoothed_images,
    ),
    assumptions=(NUMBERS_ONLY,),
    spellings=(
        "MatMul for NonMaxSuppression",
        "MatMul for RoiAlign",
        "MatMul for bags",
        *SELECTIONS,
        "unrolled Loop",
        "unrolled recurrence",
        "sorted TopK",
        "static Reshape",
        "MatMul for DFT",
        "Gather for GridSample",
        "computed indices",
        "Gather for inexact Resize",
        "rows for ScatterND",
        "positive axes",
        "strict comparisons",
        "indices of planes",
        "ConvTranspose for Col2Im",
        "odd Asinh",
        "stable Softplus",
    ),
    command='`tinygrad.nn.onnx.OnnxRunner("model.onnx")`',
)
