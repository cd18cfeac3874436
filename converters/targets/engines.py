"""Inference engines and compilers that read ONNX files."""

from __future__ import annotations

from dataclasses import replace

from converters.targets import limits
from converters.targets.assumptions import TIES
from converters.targets.target import Spelling, Target

_COMMON: tuple[Spelling, ...] = (
    "MatMul for bags",
    "unseeded RandomUniform",
    "unrolled Loop",
    "binary operators",
    "sorted TopK",
    "static Reshape",
    "no scalar constants",
    "no leading 1s",
    "no boolean constants",
    "stated kernels",
)

_NOT_IN_TENSORRT = """
    BitShift Compress ConcatFromSequence ConvInteger Det DynamicQuantizeLinear MatMulInteger MaxRoiPool MaxUnpool Multinomial
    QLinearConv QLinearMatMul SequenceAt SequenceConstruct SequenceEmpty SequenceErase SequenceInsert SequenceLength
    SplitToSequence StringNormalizer TfIdfVectorizer Unique
"""

_NOT_IN_TINYGRAD = """
    Bernoulli BitCast BitShift Col2Im ConcatFromSequence CumProd DFT DeformConv Det GRU GlobalLpPool GridSample LSTM LpPool
    MaxRoiPool MelWeightMatrix Multinomial NonMaxSuppression RNN RandomNormal RandomNormalLike RandomUniform
    RandomUniformLike RegexFullMatch ReverseSequence RoiAlign STFT SequenceAt SequenceConstruct SequenceEmpty SequenceErase
    SequenceInsert SequenceLength SplitToSequence StringConcat StringNormalizer StringSplit TfIdfVectorizer Unique
"""

_NOT_IN_TVM = """
    Bernoulli BitCast BlackmanWindow CenterCropPad Celu Col2Im ConvInteger CumProd DFT DeformConv Det GRU HammingWindow
    HannWindow LSTM LpNormalization MelWeightMatrix Multinomial NegativeLogLikelihoodLoss QLinearConv QLinearMatMul RNN
    RandomNormal RandomNormalLike RandomUniform RandomUniformLike RegexFullMatch ReverseSequence STFT
    SoftmaxCrossEntropyLoss StringConcat StringNormalizer StringSplit TfIdfVectorizer
"""

_NOT_IN_MNN = """
    Bernoulli BlackmanWindow ConvInteger DFT DeformConv HammingWindow HannWindow Hardmax IsInf IsNaN MatMulInteger
    MelWeightMatrix Multinomial QLinearConv QLinearMatMul StringNormalizer TfIdfVectorizer
"""

_NOT_IN_NCNN = """
    And ArgMax CumSum Equal GatherElements Greater GreaterOrEqual IsInf IsNaN Less LessOrEqual NonMaxSuppression Not Or
    ScatterND Selu TopK Where Xor
"""

_NOT_IN_ONNX2TORCH = """
    Acosh Asinh Atanh Bernoulli BitShift Compress ConcatFromSequence ConvInteger Cosh DequantizeLinear Det
    DynamicQuantizeLinear GRU GlobalLpPool GlobalMaxPool GridSample Hardmax LSTM LpNormalization LpPool MatMulInteger
    MaxRoiPool MaxUnpool Multinomial OneHot QLinearConv QLinearMatMul QuantizeLinear RNN RandomNormal RandomNormalLike
    RandomUniform RandomUniformLike ReverseSequence STFT ScatterElements SequenceAt SequenceConstruct SequenceEmpty
    SequenceErase SequenceInsert SequenceLength Shrink Sinh Size SpaceToDepth SplitToSequence StringNormalizer
    TfIdfVectorizer ThresholdedRelu Trilu Unique
"""

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

_COMPILED = Target(
    "compiled",
    "an engine that requires static shapes",
    "not measured",
    opsets=(11, 21),
    static=True,
    control_flow=False,
    spellings=_COMMON,
)
"""The common properties of engines without dynamic shapes. Engines that were not measured get those that others need. """

_NOT_IN_OPENCV4 = """
    And Bernoulli BitShift BitwiseAnd BitwiseNot BitwiseOr BitwiseXor BlackmanWindow CastLike CenterCropPad Col2Im
    Compress ConcatFromSequence ConvInteger DFT DeformConv Det EyeLike GatherND GlobalLpPool GridSample
    HammingWindow HannWindow Hardmax IsInf IsNaN LpNormalization LpPool MatMulInteger MaxRoiPool
    MeanVarianceNormalization MelWeightMatrix Multinomial NegativeLogLikelihoodLoss NonMaxSuppression NonZero OneHot
    Or RNN RandomNormal RandomUniform RandomUniformLike ReverseSequence RoiAlign STFT Size SoftmaxCrossEntropyLoss
    SplitToSequence StringNormalizer TfIdfVectorizer Trilu Unique Xor
"""

_NOT_IN_OPENCV = """
    Bernoulli DeformConv Multinomial RandomNormal RandomUniform RandomUniformLike ReverseSequence
"""

_NOT_IN_OPENVINO = """
    Bernoulli BitCast ConcatFromSequence CumProd DeformConv Det MaxUnpool MelWeightMatrix RegexFullMatch SequenceConstruct
    SequenceErase SequenceInsert SequenceLength SplitToSequence StringConcat StringNormalizer StringSplit TfIdfVectorizer
"""

OPENCV = replace(
    _COMPILED,
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
        limits.long_transpositions,
        limits.products_of_integers,
        limits.long_unsigned_casts,
    ),
    spellings=(
        *_COMMON,
        "unrolled forms of recurrence",
        "channel slopes",
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
    spellings=(
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
TRACT = Target(
    "tract",
    "tract",
    "tract 0.23",
    opsets=(11, 21),
    lacks={"DeformConv": "", "Loop": "", "RoiAlign": ""},
    limits=(
        limits.free_scales_of_corners,
        limits.cubic_samples,
        limits.stated_shape,
        limits.celu,
        limits.selected_boxes,
    ),
    spellings=(
        *_COMMON,
        "MatMul for RoiAlign",
        "explicit padding",
        "ConvTranspose for Col2Im",
        "Gather for strided Slice",
        "Gather for aligned Resize",
        "Slice for negative pads",
        "Div for Mod",
        "whole dividends",
        "expanded LogSoftmax",
        "stable Softplus",
        "copied products",
        "Gather for Expand",
        "reduced numbers",
        "counted outputs",
        "wide sizes",
        "no named dimensions",
    ),
    command='`tract.onnx().load("model.onnx")`',
)
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
    ),
    assumptions=(TIES,),
    control_flow=False,
    spellings=(
        *_COMMON,
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
        "unfused RMS normalization",
        "whole addends",
        "ConvTranspose for Col2Im",
        "MatMul for DFT",
        "MatMul for Resize",
        "Slice for negative pads",
    ),
    command="`mnnconvert -f ONNX --modelFile model.onnx --MNNModel model.mnn --bizCode x`",
)
TVM = replace(
    _COMPILED,
    name="tvm",
    title="Apache TVM",
    evidence="apache-tvm 0.27",
    opsets=(13, 21),  # a Resize has no sizes if it has empty scales, as those of opset 11 have
    lacks=dict.fromkeys(_NOT_IN_TVM.split(), ""),
    limits=(
        limits.computed_axis,
        limits.computed_dimensions,
        limits.computed_from_dimensions,
        limits.free_scales,
        limits.indices_of_maxima,
        limits.small_floats,
        limits.unknown_dimensions,
    ),
    spellings=(
        "unrolled recurrence",
        *_COMMON,
        "MatMul for DFT",
        "ConvTranspose for Col2Im",
        "Gather for unclear Resize",
        "compared Sign",
        "rounded integer Pow",
        "compared non-numbers",
        "matrix operands",
        "reduced numbers",
        "scaled regions",
    ),
    command="`tvm.relax.frontend.onnx.from_onnx(onnx.load(...))`",
)
TINYGRAD = replace(
    _COMPILED,
    name="tinygrad",
    title="tinygrad",
    evidence="tinygrad 0.14",
    lacks=dict.fromkeys(_NOT_IN_TINYGRAD.split(), ""),
    limits=(limits.indices_of_maxima,),
    spellings=(
        "MatMul for NonMaxSuppression",
        "MatMul for RoiAlign",
        "MatMul for bags",
        "unrolled Loop",
        "unrolled recurrence",
        "sorted TopK",
        "static Reshape",
        "MatMul for DFT",
        "Gather for GridSample",
        "computed indices",
    ),
    command='`tinygrad.nn.onnx.OnnxRunner("model.onnx")`',
)
NCNN = replace(
    _COMPILED,
    name="ncnn",
    title="ncnn (through pnnx)",
    evidence="ncnn and pnnx of 2026",
    opsets=(11, 17),  # pnnx ignores reductions along one axis that is an input, as those of opset 18 are
    lacks=dict.fromkeys(_NOT_IN_NCNN.split(), ""),
    limits=(
        limits.integers,
        limits.padded_integers,
        limits.recurrent,
        limits.reset_before,
        limits.several_sequences,
        limits.uneven_padding,
        limits.smoothed_images,
        limits.stated_shape,
        limits.remainders,
        limits.nearest_samples,
        limits.reflected_samples,
        limits.casts_of_integers,
        limits.computed_factors,
        limits.many_dimensions,
        limits.computed_powers,
        limits.constant_places,
        limits.dilated_maxima,
    ),
    spellings=(
        *_COMMON,
        "unrolled forms of recurrence",
        "4D InstanceNormalization",
        "MatMul for DFT",
        "expanded LogSoftmax",
        "stable Softplus",
        "stated modes",
        "explicit padding",
        "symmetric padding",
        "half-pixel Resize",
        "Gather for strided Slice",
        "bounded Slice",
        "unchecked rows",
        "looked-up masks",
        "rows of matrices",
        "Slice for Gather",
        "merged directions",
        "ReduceMean for ReduceSum",
        "channel slopes",
        "Conv for SpaceToDepth",
        "DepthToSpace for Transpose",
        "Split before Transpose",
        "merged axes",
        "normalized lines",
        "biased normalization",
        "MatMul for CumSum",
        "Slice for negative pads",
        "Elu for Selu",
        "expanded Pow",
        "extremes of single axes",
        "separate functions",
        "sliced ConvTranspose",
    ),
    command="`pnnx model.onnx inputshape=[1,3,224,224]`",
)
RKNN = replace(
    _COMPILED,
    name="rknn",
    title="Rockchip's RKNN toolkit",
    opsets=(12, 19),
    command='`rknn.api.RKNN().load_onnx("model.onnx")`',
)
TFLITE = replace(
    _COMPILED,
    name="tflite",
    title="TensorFlow Lite (through onnx2tf)",
    opsets=(11, 18),
    command="`onnx2tf -i model.onnx`",
)
IREE = replace(
    _COMPILED,
    name="iree",
    title="IREE",
    evidence="iree-base-compiler 3.13",
    spellings=(*_COMMON, "MatMul for DFT", "forward GRU", "odd Asinh"),
    command="`iree-import-onnx model.onnx -o model.mlir`",
)

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
    control_flow=False,
    spellings=(
        "unrolled recurrence",
        *_COMMON,
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

JAX = Target(
    "jax",
    "JAX (through jaxonnxruntime)",
    "jaxonnxruntime 0.3.0",
    opsets=(16, 16),  # it has single versions of many operators
    static=True,
    operators=frozenset((*_JAX.split(), *_REWRITTEN_FOR_JAX.split())),
    limits=(limits.means_of_integers,),
    control_flow=False,
    spellings=(
        "MatMul for RoiAlign",
        "Conv for ConvTranspose",
        "unrolled recurrence",
        *_COMMON,
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

TENSORRT = Target(
    "tensorrt",
    "NVIDIA's TensorRT",
    "the operators that onnx-tensorrt lists",
    opsets=(13, 21),
    lacks=dict.fromkeys(_NOT_IN_TENSORRT.split(), ""),
    spellings=("sorted TopK", "static Reshape", "no leading 1s"),
    command="`trtexec --onnx=model.onnx`",
)

ENGINES = (OPENCV, OPENCV4, OPENVINO, TRACT, TVM, TINYGRAD, MNN, NCNN, RKNN, TFLITE, IREE, TENSORRT, ONNX2TORCH, JAX)
