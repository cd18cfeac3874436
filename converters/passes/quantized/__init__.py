"""Quantised networks in integers: what FakeQuantize emulates in floats, said so that ONNX Runtime computes it in 8 bits.

ONNX Runtime fuses an operator with the DequantizeLinear before and the QuantizeLinear behind it into an integer kernel. So
it is not enough to write each FakeQuantize as such a pair: the pairs must stand right before and behind Conv, Add, Mul and
pooling. `ConvertToIntegers` puts them there; `affine` says what integers stand for, `weights` finds those of constants,
`convolutions` and `products` arrange what takes both.
"""

from converters.passes.quantized.integers import ConvertToIntegers, is_quantized

__all__ = ["ConvertToIntegers", "is_quantized"]
