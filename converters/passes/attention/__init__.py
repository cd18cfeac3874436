"""Attention: one canonical form, and its lowerings.

`spellings` recognizes how graphs spell attention, and returns the canonical form of `canonical`. The lowerings of this form
are:

- `encoder`: one node for attention without a cache;
- `in_place_cache`: variables that are caches, extended in place;
- `standard`: Attention of ONNX 23, for targets other than ONNX Runtime;
- `genai`: caches as inputs and outputs of the graph, with GroupQueryAttention, as onnxruntime-genai needs them.

Attention that no lowering supports stays in standard operators. The rule of ScaledDotProductAttention emits these,
too, and not the canonical form. The passes between the rules and the lowerings, and the probes, which evaluate the
graph, then need standard operators only, and one set of conditions leads to the canonical form.
"""

from converters.passes.attention.genai import PAST, PRESENT, Decoder, ExposeCaches, NotACache
from converters.passes.attention.in_place_cache import ExtendCachesInPlace

__all__ = ["PAST", "PRESENT", "Decoder", "ExposeCaches", "ExtendCachesInPlace", "NotACache"]
