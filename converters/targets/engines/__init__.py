"""Inference engines and compilers that read ONNX files."""

from converters.targets.engines.iree import IREE
from converters.targets.engines.jax import JAX
from converters.targets.engines.mnn import MNN
from converters.targets.engines.ncnn import NCNN
from converters.targets.engines.onnx2torch import ONNX2TORCH
from converters.targets.engines.opencv import OPENCV, OPENCV4
from converters.targets.engines.openvino import OPENVINO
from converters.targets.engines.rknn import RKNN
from converters.targets.engines.tensorrt import TENSORRT
from converters.targets.engines.tflite import TFLITE
from converters.targets.engines.tinygrad import TINYGRAD
from converters.targets.engines.tract import TRACT
from converters.targets.engines.tvm import TVM

ENGINES = (OPENCV, OPENCV4, OPENVINO, TRACT, TVM, TINYGRAD, MNN, NCNN, RKNN, TFLITE, IREE, TENSORRT, ONNX2TORCH, JAX)
