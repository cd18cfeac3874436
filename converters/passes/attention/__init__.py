"""Attention: a canonical form and its lowerings.

`spellings` recognizes the patterns of attention in graphs, and returns their canonical form (`canonical`). The lowerings of
this form are:

- `encoder`: one node for attention without a cache;
- `in_place_cache`: variables that are caches, extended in place;
- `standard`: Attention of ONNX 23, for targets other than ONNX Runtime;
- `genai`: caches as inputs and outputs of the graph, with GroupQueryAttention, as onnxruntime-genai requires.

Attention that no lowering supports stays in standard operators. The rule of ScaledDotProductAttention emits standard
operators, too, instead of the canonical form. The passes between the rules and the lowerings, and the probes, which evaluate
the graph, therefore only need to support standard operators, and there is a single set of conditions for the canonical form.

The alternative, a rule that emits the domain's Attention for four dimensions, known heads and sizes, and one batch, was
measured on the 31 networks of the tests with this layer. The graphs for onnxruntime-genai and the caches of language models
did not change, because their heads are shared or their batch sizes may differ. For other targets and at opset 23, ten
networks had 2 to 50 more nodes, mainly transpositions for the operator's layout. For ONNX Runtime, eleven networks had 2 to
48 fewer, because `encoder` has more conditions.
"""

from converters.passes.attention.genai import PAST, PAST_STATE, PRESENT, PRESENT_STATE, Decoder, ExposeCaches, NotACache
from converters.passes.attention.in_place_cache import ExtendCachesInPlace

__all__ = [
    "PAST",
    "PAST_STATE",
    "PRESENT",
    "PRESENT_STATE",
    "Decoder",
    "ExposeCaches",
    "ExtendCachesInPlace",
    "NotACache",
]
