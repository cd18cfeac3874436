"""The modules of transformers in the names of a language model's layers, which show types other than the stated one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

_MODULE = re.compile(r"__module\.[^/]*\b(?:layers|h)\.\d+\.([^/]+)/")

_LLAMA, _WITH_NORMS = frozenset({"self_attn.q_proj"}), frozenset({"self_attn.q_proj", "self_attn.q_norm"})
_MODULES = {
    "bloom": frozenset({"self_attention.query_key_value"}),
    "gemma3_text": _WITH_NORMS,
    "gpt2": frozenset({"attn.c_attn"}),
    "gpt_neox": frozenset({"attention.query_key_value"}),
    "gpt_oss": _LLAMA,
    "llama": _LLAMA,
    "mistral": _LLAMA,
    "mixtral": _LLAMA,
    "phi3": frozenset({"self_attn.qkv_proj"}),
    "qwen2": _LLAMA,
    "qwen3": _WITH_NORMS,
}
"""Type -> the modules of its attentions in transformers that distinguish it from other types of the tables."""

_MIXER = frozenset({"mixer.in_proj"})
_CONVOLUTIONS = _LLAMA | {"conv.in_proj"}
_DELTA_RULE = _WITH_NORMS | {"linear_attn.in_proj_qkv"}
_MODULES_OF_HYBRIDS = {
    "falcon_mamba": _MIXER,
    "granitemoehybrid": _LLAMA | {"mamba.in_proj"},
    "lfm2": _CONVOLUTIONS,
    "lfm2_moe": _CONVOLUTIONS,
    "mamba": _MIXER,
    "qwen3_5": _DELTA_RULE,
    "qwen3_5_moe": _DELTA_RULE,
    "qwen3_5_moe_text": _DELTA_RULE,
    "qwen3_5_text": _DELTA_RULE,
    "qwen3_next": _WITH_NORMS | {"linear_attn.in_proj_qkvz"},
    "zamba2": frozenset({"mamba.in_proj", "mamba_decoder.mamba.in_proj", "shared_transformer.self_attn.q_proj"}),
}
"""The same for types whose configuration selects the kind of each layer. A model has some of the modules."""

_OF_A_PAIR = re.compile(
    r"__module\.(?:(?:model\.)?(?:en|de)coder\.)?(?:layers\.\d+\.|block\.\d+\.layer\.\d+\.)?"
    r"(self_attn|SelfAttention|layernorm_embedding|layer_norm)[./]"
)
_BART = frozenset({"self_attn", "layernorm_embedding"})
_PEGASUS = frozenset({"self_attn", "layer_norm"})
_T5 = frozenset({"SelfAttention", "layer_norm"})
_MODULES_OF_PAIRS = {
    "bart": _BART,
    "blenderbot": _PEGASUS,
    "blenderbot-small": _BART,
    "m2m_100": _PEGASUS,
    "marian": frozenset({"self_attn"}),
    "mbart": _BART | _PEGASUS,
    "mt5": _T5,
    "pegasus": _PEGASUS,
    "t5": _T5,
    "umt5": _T5,
    "whisper": _PEGASUS,
}
"""The same for the encoder and the decoder of encoder-decoders: the attention, and normalizations outside the layers (in the
layers of T5).
"""

_DISTINGUISHING = frozenset().union(*_MODULES.values(), *_MODULES_OF_HYBRIDS.values())


def modules_of_another_type(stated: object, names: Iterable[str]) -> str:
    """Return what distinguishes a model's layers from those of its stated type; empty if nothing does.

    Args:
        stated: the ``model_type`` of the configuration. Only known types are checked.
        names: the names of layers, as OpenVINO's PyTorch frontend writes them.
    """
    kind = str(stated)
    if kind in _MODULES_OF_PAIRS:
        found = frozenset(match[1] for name in names if (match := _OF_A_PAIR.match(name)))
        if found == _MODULES_OF_PAIRS[kind] or not found & {"self_attn", "SelfAttention"}:
            return ""
        others = [other for other, modules in _MODULES_OF_PAIRS.items() if found == modules]
        return _shown(found, others)
    found = _DISTINGUISHING.intersection(match[1] for name in names if (match := _MODULE.match(name)))
    if not found or kind not in {*_MODULES, *_MODULES_OF_HYBRIDS} or _has(kind, found):
        return ""
    others = [other for other in (*_MODULES, *_MODULES_OF_HYBRIDS) if _has(other, found)]
    return _shown(found, others)


def _shown(found: Iterable[str], others: Sequence[str]) -> str:
    which = f", as in the {'types' if len(others) > 1 else 'type'} {', '.join(others)}" if others else ""
    return f"{' and '.join(sorted(found, reverse=True))}{which}"


def _has(kind: str, found: frozenset[str]) -> bool:
    """Return whether models of a type can have exactly the found modules, of those that distinguish types."""
    return found == _MODULES[kind] if kind in _MODULES else found <= _MODULES_OF_HYBRIDS[kind]
