"""Attention: one canonical form, and its lowerings.

`spellings` recognizes how graphs spell attention, and returns the canonical form of `canonical`. The lowerings of this form
are:

- `encoder`: one node for attention without a cache;
- `in_place_cache`: variables that are caches, extended in place;
- `standard`: Attention of ONNX 23, for targets other than ONNX Runtime;
- `genai`: caches as inputs and outputs of the graph, with GroupQueryAttention, as onnxruntime-genai needs them.

Attention that no lowering supports stays in standard operators. The rule of ScaledDotProductAttention emits these, too, not the
canonical form: all passes between the rules and the lowerings, and the probes, which evaluate the graph, then need only standard
operators, and there is one way to the canonical form, with one set of conditions.
"""

from converters.passes.attention.genai import PAST, PRESENT, Decoder, ExposeCaches, NotACache
from converters.passes.attention.in_place_cache import ExtendCachesInPlace

__all__ = ["PAST", "PRESENT", "Decoder", "ExposeCaches", "ExtendCachesInPlace", "NotACache"]
