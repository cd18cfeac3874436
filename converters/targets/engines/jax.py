"""JAX, through jaxonnxruntime."""

from __future__ import annotations

from converters.targets import limits
from converters.targets.engines.common import COMMON
from converters.targets.target import SELECTIONS, Target

_JAX = """
    Abs Acos Acosh Add And ArgMax ArgMin Asin Asinh Atan Atanh AveragePool BatchNormalization BitShift Cast Ceil Clip
    Concat Constant ConstantOfShape Conv Cos Cosh Div Einsum Equal Erf Exp Expand Flatten Gather GatherElements Gemm
    GlobalAveragePool Identity LRN LeakyRelu Less LessOrEqual Log LogSoftmax MatMul Max MaxPool Min Mul Neg NonZero Not
    OneHot Or PRelu Pad Pow Range Reciprocal ReduceMax ReduceMean ReduceSum Relu Reshape Selu Shape Sigmoid Sin Sinh Slice
    Softmax Softplus Split Sqrt Squeeze Sub Sum Tanh TopK Transpose Trilu Unsqueeze Where
"""
_REWRITTEN_FOR_JAX = """
    Floor Gelu Greater GreaterOrEqual GroupNormalization HardSigmoid HardSwish LayerNormalization Mish RMSNormalization
"""
"""Operators of opset 21 that older ones lack, and those of the spelling "Less for Greater"."""
JAX = Target(
    "jax",
    "JAX (through jaxonnxruntime)",
    "jaxonnxruntime 0.3.0",
    opsets=(16, 16),  # it has single versions of many operators
    static=True,
    operators=frozenset((*_JAX.split(), *_REWRITTEN_FOR_JAX.split())),
    limits=(limits.means_of_integers,),
    control_flow=frozenset(),
    spellings=(
        "MatMul for RoiAlign",
        "Conv for ConvTranspose",
        "unrolled recurrence",
        *SELECTIONS,
        *COMMON,
        "Gather for reversed Slice",
        "bounded Slice",
        "normalized rows",
        "expanded Tile",
        "Less for Greater",
        "MatMul for CumSum",
        "ReduceSum for norms",
        "MatMul for DFT",
        "MatMul for every Resize",
        "Gather for GridSample",
        "compared Sign",
    ),
    command='`jaxonnxruntime.call_onnx.call_onnx_model(onnx.load("model.onnx"), inputs)`',
)
