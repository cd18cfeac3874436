"""Quantized networks in integers: from FakeQuantize, which emulates them in floats, to the form that ONNX Runtime computes
in 8 bits.

ONNX Runtime fuses an operator with the DequantizeLinear before and the QuantizeLinear after it into an integer kernel.
Converting each FakeQuantize to such a pair is therefore not enough: the pairs must be directly before and after Conv, Add,
Mul and pooling. `ConvertToIntegers` inserts them. `affine` describes the meaning of the integers, `weights` finds the
integers of constants, and `convolutions` and `matmuls` convert the operators with weights.
"""

from converters.passes.quantized.float_residuals import AddFloatResiduals
from converters.passes.quantized.integers import ConvertToIntegers, is_quantized

__all__ = ["AddFloatResiduals", "ConvertToIntegers", "is_quantized"]
