"""Operators that ONNX lacks, as the custom domain ``onnx_specops``: schemas, bodies in standard ONNX and kernels."""

from onnx_specops import ops as _ops
from onnx_specops.domain import DOMAIN, OPSET_VERSION, register_schemas

register_schemas()
del _ops

__version__ = "0.1.0"

__all__ = ["DOMAIN", "OPSET_VERSION"]
