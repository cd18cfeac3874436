"""Inference engines and compilers that read ONNX files themselves."""

from __future__ import annotations

from converters.targets.target import Spelling, Target

_COMMON: tuple[Spelling, ...] = (
    "pairwise",
    "sorted TopK",
    "static Reshape",
    "one element",
    "short constants",
    "no boolean constants",
)

_NOT_IN_TENSORRT = """
    BitShift Compress ConcatFromSequence ConvInteger Det DynamicQuantizeLinear MatMulInteger MaxRoiPool MaxUnpool Multinomial
    QLinearConv QLinearMatMul SequenceAt SequenceConstruct SequenceEmpty SequenceErase SequenceInsert SequenceLength
    SplitToSequence StringNormalizer TfIdfVectorizer Unique
"""

OPENCV = Target(
    "opencv",
    "OpenCV's dnn module",
    "opencv-python-headless 5.0.0 and 4.14.0",
    opsets=(11, 19),  # of DFT 20 it does not read the axis
    static=True,
    control_flow=False,
    spellings=(*_COMMON, "no defaults", "no lines", "pictures", "by level"),
    command='`cv2.dnn.readNetFromONNX("model.onnx")`',
)
OPENVINO = Target(
    "openvino",
    "OpenVINO's ONNX frontend",
    "openvino 2026.4.1",
    opsets=(11, 19),  # of DFT 20 it does not read the axis
    quantized="qdq",
    spellings=("sorted TopK", "static Reshape"),
    command='`openvino.Core().read_model("model.onnx")`',
)
TRACT = Target(
    "tract",
    "tract",
    "tract 0.23",
    opsets=(11, 21),
    lacks={"Loop": "", "RoiAlign": ""},
    spellings=_COMMON,
    command='`tract.onnx().load("model.onnx")`',
)
TVM = Target(
    "tvm",
    "Apache TVM",
    "apache-tvm 0.27",
    opsets=(11, 21),
    static=True,
    control_flow=False,
    spellings=_COMMON,
    command="`tvm.relax.frontend.onnx.from_onnx(onnx.load(...))`",
)
TINYGRAD = Target(
    "tinygrad",
    "tinygrad",
    "not measured",
    opsets=(11, 21),
    static=True,
    control_flow=False,
    spellings=("sorted TopK", "static Reshape"),
    command='`tinygrad.nn.onnx.OnnxRunner("model.onnx")`',
)
MNN = Target(
    "mnn",
    "MNN",
    "MNN 3.6",
    opsets=(11, 17),  # of ReduceL1, ReduceL2, ReduceSumSquare and ReduceLogSumExp 18 it ignores the axes
    lacks={"DFT": ""},
    control_flow=False,
    spellings=_COMMON,
    command="`mnnconvert -f ONNX --modelFile model.onnx --MNNModel model.mnn --bizCode x`",
)
NCNN = Target(
    "ncnn",
    "ncnn, by way of pnnx",
    "ncnn and pnnx of 2026",
    opsets=(11, 21),
    static=True,
    control_flow=False,
    spellings=_COMMON,
    command="`pnnx model.onnx inputshape=[1,3,224,224]`",
)
RKNN = Target(
    "rknn",
    "Rockchip's RKNN toolkit",
    "not measured",
    opsets=(12, 19),
    static=True,
    control_flow=False,
    spellings=_COMMON,
    command='`rknn.api.RKNN().load_onnx("model.onnx")`',
)
TFLITE = Target(
    "tflite",
    "TensorFlow Lite, by way of onnx2tf",
    "not measured",
    opsets=(11, 18),
    static=True,
    control_flow=False,
    spellings=_COMMON,
    command="`onnx2tf -i model.onnx`",
)
IREE = Target(
    "iree",
    "IREE",
    "not measured",
    opsets=(11, 21),
    static=True,
    control_flow=False,
    spellings=_COMMON,
    command="`iree-import-onnx model.onnx -o model.mlir`",
)

TENSORRT = Target(
    "tensorrt",
    "NVIDIA's TensorRT",
    "the operators that onnx-tensorrt lists",
    opsets=(13, 21),
    lacks=dict.fromkeys(_NOT_IN_TENSORRT.split(), ""),
    spellings=("sorted TopK", "static Reshape", "short constants"),
    command="`trtexec --onnx=model.onnx`",
)

ENGINES = (OPENCV, OPENVINO, TRACT, TVM, TINYGRAD, MNN, NCNN, RKNN, TFLITE, IREE, TENSORRT)
