"""ONNX Runtime, and the devices that its execution providers are for."""

from __future__ import annotations

from converters.targets.target import Target
from onnx_specops.building import OPSET

ONNXRUNTIME = Target(
    "onnxruntime",
    "ONNX Runtime",
    "onnxruntime 1.17 to 1.32",
    opsets=(OPSET, OPSET),
    functions=True,
    contrib=True,
    domain=True,
    onnxruntime=True,
    float32=False,
    quantized="qdq",
)
STANDARD = Target(
    "standard",
    "standard ONNX",
    "the operators' schemas",
    opsets=(11, OPSET),
    onnxruntime=True,
    quantized="qdq",
    command="any program that reads ONNX",
)

RUNTIMES = (ONNXRUNTIME, STANDARD)
