"""Cases for which OpenVINO's results depend on the processor."""

from __future__ import annotations

from tests.processor import HAS_AVX512, SATURATES

OPERATIONS_OF_AVX512 = {
    *(f"Convert-1-{source}-bf16-f32" for source in ("computed", "f16", "f32", "f64", "i32", "i64", "u16")),
    *(f"Convert-1-computed-bf16-{target}" for target in ("f64", "i32")),
    *(f"{operation}-uint8-beyond" for operation in ("Acos-1", "Acosh-4", "Asin-1")),
    "Convolution-1-pads-larger-than-kernel",
    "ReduceMax-1-infinities-bf16-compared",
}
"""Cases of operations for which OpenVINO's CPU plugin (2026.4.1) gives other results without AVX-512: bf16 is rounded at
other places, NaN is another u8, and a convolution returns uninitialized memory."""
OPERATIONS_OF_VNNI = {"Convolution-1-int8"}
"""Cases in which its sums saturate without VNNI."""
ROUNDTRIPS_OF_AVX512 = {"test_attention_4d_causal_padded_kv_bf16_expanded"}
"""ONNX's tests in which it gives queries that see no key other numbers in bf16 without AVX-512."""


def depends_on_processor(name: str) -> bool:
    """Return whether OpenVINO gives another result of a case on this processor."""
    of_avx512 = name in OPERATIONS_OF_AVX512 or name in ROUNDTRIPS_OF_AVX512
    return (of_avx512 and not HAS_AVX512) or (name in OPERATIONS_OF_VNNI and SATURATES)
