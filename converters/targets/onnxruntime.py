"""ONNX Runtime and the devices of its execution providers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import onnx_ir as ir

from converters.targets import limits
from converters.targets.assumptions import DISTINCT_INDICES, HALF_ANGLES, HALF_TIES
from converters.targets.target import SELECTIONS, Target
from onnx_specops.building import OPSET
from onnx_specops.graphs import all_nodes

RELEASE = "1.32"
"""The release of ONNX Runtime that `FIRST_WITHOUT_KERNEL` describes."""

FIRST_WITHOUT_KERNEL: Mapping[str, int] = {
    "DequantizeLinear": 28,
    "GlobalLpPool": 22,
    "MaxRoiPool": 22,
    "Multinomial": 22,
    "QuantizeLinear": 28,
    "RandomNormal": 22,
    "RandomNormalLike": 22,
    "RandomUniform": 22,
    "RandomUniformLike": 22,
    "RoiAlign": 22,
}
"""Operators with a CPU kernel at opset 21 -> the first newer opset whose version of the operator has no kernel."""

_NOT_IN_CUDA = """
    Acos Acosh Asin Asinh Atan Atanh BitShift BitwiseAnd BitwiseNot BitwiseOr BitwiseXor Col2Im Cosh DFT Sinh Tan Unique
"""

ONNXRUNTIME = Target(
    "onnxruntime",
    "ONNX Runtime",
    "onnxruntime 1.18 to 1.32",
    opsets=(OPSET, OPSET),
    functions=True,
    contrib=True,
    domain=True,
    onnxruntime=True,
    float32=False,
    quantized="qdq",
)
CUDA = replace(
    ONNXRUNTIME,
    name="cuda",
    title="ONNX Runtime's CUDA execution provider",
    evidence="onnxruntime-gpu 1.31.1 on an NVIDIA H200",
    lacks=dict.fromkeys(_NOT_IN_CUDA.split(), ""),
    limits=(limits.indices_of_maxima, limits.reset_before_of_unknown_sizes),
    spellings=(
        "several elements",
        "rounded integer Pow",
        "Cast through integers",
        "float biases",
        "last of equal indices",
        "assertions by Reshape",
    ),
    cache="float16",
    n_bits=True,
    command='`providers=["CUDAExecutionProvider", "CPUExecutionProvider"]`',
)
STANDARD = Target(
    "standard",
    "standard ONNX",
    "the operators' schemas",
    opsets=(11, 26),
    onnxruntime=True,
    quantized="qdq",
    spellings=("sums for LRN", "NaN of recurrence"),
    command="any program that reads ONNX",
)

# The lists below are published by the projects. Some of the operators are limited to certain attributes or types there.

_QNN = """
    Abs Add And ArgMax ArgMin ArrayFeatureExtractor Asin Atan AveragePool BatchNormalization Cast Clip Concat Conv
    ConvTranspose Cos DepthToSpace DequantizeLinear Div Elu Equal Exp Expand Flatten Floor Gather Gelu Gemm
    GlobalAveragePool Greater GreaterOrEqual GridSample GRU HardSwish If InstanceNormalization IsInf LRN LSTM
    LayerNormalization LeakyRelu Less LessOrEqual Log LogSoftmax LpNormalization LpPool MatMul Max MaxPool MaxRoiPool
    Min Mul Neg NonMaxSuppression Not OneHot Or PRelu Pad Pow QLinearConv QLinearMatMul QuantizeLinear RMSNormalization
    ReduceLogSumExp
    ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum Relu Reshape Resize Round Selu Shape Sigmoid Sign Sin Slice
    Softmax SpaceToDepth Split Sqrt Squeeze Sub Swish Tanh Tile TopK Transpose Unsqueeze Where Xor
"""

_NOT_IN_WEBGPU = """
    AffineGrid BitShift BitwiseAnd BitwiseNot BitwiseOr BitwiseXor Celu CenterCropPad Col2Im Compress ConcatFromSequence
    ConstantOfShape Det EyeLike GlobalLpPool GridSample Hardmax IsInf IsNaN LRN LogSoftmax Loop LpPool MaxRoiPool MaxUnpool
    Mean Mod NonMaxSuppression NonZero OneHot Or QuantizeLinear RNN RandomNormal RandomUniform ReverseSequence RoiAlign
    Round STFT Scan Selu Shrink Sign Size Softsign SpaceToDepth Sum Unique Xor
"""

_COREML = """
    Add ArgMax AveragePool BatchNormalization Cast Clip Concat Conv DepthToSpace Div Flatten Gemm GlobalAveragePool
    GlobalMaxPool LRN LeakyRelu MatMul MaxPool Mul PRelu Pad Pow Reciprocal ReduceSum Relu Reshape Resize Sigmoid Sqrt
    Squeeze Sub Tanh Transpose
"""

QNN = Target(
    "qnn",
    "ONNX Runtime's QNN execution provider (Qualcomm NPUs)",
    "onnxruntime-qnn 2.7.0, and the operators of its documentation",
    opsets=(13, 23),
    onnxruntime=True,
    static=True,
    quantized="qdq",
    operators=frozenset(_QNN.split()),
    limits=(
        limits.narrow_maxima,
        limits.nearest_samples,
        limits.resized_integers,
        limits.means_of_regions,
        limits.divisors_of_0,
    ),
    assumptions=(HALF_ANGLES, HALF_TIES, DISTINCT_INDICES),
    halves=True,
    spellings=(
        "MatMul for bags",
        "sums of parts",
        "unrolled forms of recurrence",
        "MatMul for DFT",
        "ConvTranspose for Col2Im",
        "Split before Transpose",
        "MatMul for float CumSum",
        "five dimensions",
        "kernels of strides",
        "merged elements",
        "merged lines",
        "merged axes",
        *SELECTIONS,
        "wrapped angles",
        "unrolled Loop",
        "ArgMax",
        "binary operators",
        "sorted TopK",
        "reversed TopK",
        "static Reshape",
        "asymmetric Resize",
        "floor pooling",
        "Conv for AveragePool",
        "Pad before Conv",
        "Gather for edges",
        "Concat for ends",
        "Concat for integer Pad",
        "Atan for Acos",
        "reduced numbers",
        "bytes through integers",
        "wrapped bytes",
        "exact quotients",
        "Equal for Cast",
        "Max before Pad",
        "normalized matrices",
        "expanded LogSoftmax",
        "expanded Softmax",
        "expanded Softplus",
        "bounded Exp",
        "bounded Atan",
        "separate activations",
        "separate Transposes",
        "separate products",
        "quantized moves",
        "scales of quantizations",
        "separate quantizations",
        "weights of float results",
        "NaN of LSTM",
    ),
    command='`providers=["QNNExecutionProvider"]`; for quantized networks, its option `offload_graph_io_quantization="0"`',
)
WEBGPU = Target(
    "webgpu",
    "ONNX Runtime's WebGPU execution provider",
    "onnxruntime-ep-webgpu 0.4.0",
    opsets=(13, OPSET),
    onnxruntime=True,
    lacks=dict.fromkeys(_NOT_IN_WEBGPU.split(), ""),
    limits=(limits.backward_slices, limits.other_functions),
    spellings=(
        "MatMul for bags",
        "unrolled forms of recurrence",
        "MatMul for NonMaxSuppression",
        "MatMul for RoiAlign",
        "sums for LRN",
        *SELECTIONS,
        "unrolled Loop",
        "ArgMax",
        "binary operators",
        "Mul for squares",
        "static Reshape",
        "expanded LogSoftmax",
        "ConvTranspose for Col2Im",
        "Floor for Round",
        "And for Or",
        "expanded Sign",
        "Gather for GridSample",
        "Gather for integer Slice",
        "Slice from the last element",
        "Gather for integer GatherElements",
        "narrow integers",
        "scalar exponents",
        "padded channels",
        "nested Split",
        "odd groups",
        "several transposed kernels",
        "NaN of float16",
    ),
    command='`executionProviders: ["webgpu"]`; integers of 64 bits need its option `enableInt64`',
)
COREML = Target(
    "coreml",
    "ONNX Runtime's CoreML execution provider",
    "the operators of its documentation",
    opsets=(13, OPSET),
    onnxruntime=True,
    static=True,
    operators=frozenset(_COREML.split()),
    spellings=(
        "MatMul for bags",
        "unrolled Loop",
        "binary operators",
        "sorted TopK",
        "static Reshape",
        "NaN of recurrence",  # the CPU provider computes GRU and LSTM
    ),
    command='`providers=["CoreMLExecutionProvider"]`',
)
DIRECTML = Target(
    "directml",
    "ONNX Runtime's DirectML execution provider",
    "its documentation, which names opset 20 as the newest",
    opsets=(13, 20),
    onnxruntime=True,
    static=True,
    quantized="qdq",
    spellings=("sorted TopK", "static Reshape", "sums for LRN", "added NaN"),
    command='`providers=["DmlExecutionProvider"]`',
)

RUNTIMES = (ONNXRUNTIME, CUDA, STANDARD, QNN, WEBGPU, COREML, DIRECTML)


def without_kernel(model: ir.Model, opset: int) -> list[str]:
    """Return the standard operators of a model and its bodies for which ONNX Runtime's CPU has no kernel at the opset."""
    if opset < min(FIRST_WITHOUT_KERNEL.values()):
        return []
    found: set[str] = set()
    functions = dict(model.functions)
    graphs: list[ir.Graph | ir.Function] = [model.graph]
    for graph in graphs:
        for node in all_nodes(graph):
            if not node.domain:
                found.add(node.op_type)
            elif (body := functions.pop(node.op_identifier(), None)) is not None:
                graphs.append(body)
    return sorted(name for name in found if FIRST_WITHOUT_KERNEL.get(name, opset + 1) <= opset)
