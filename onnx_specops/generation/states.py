"""The states of a decoder (key-value caches, convolutions and state spaces) in relation to its configuration."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

_CACHES, _CONVOLUTIONS, _SPACES = "key-value cache", "convolution", "state space"
_NAMES = (
    (re.compile(r"past_key_values\.\d+\.(?:decoder\.)?key"), _CACHES),
    (re.compile(r"past\.key\.\d+"), _CACHES),
    (re.compile(r"past\.conv\.\d+"), _CONVOLUTIONS),
    (re.compile(r"past\.ssm\.\d+"), _SPACES),
)
"""The names of variables that optimum-intel gives states. Values of caches are not counted."""

_RECURRENT = (_CONVOLUTIONS, _SPACES)
_OF_LAYERS = {
    "attention": (_CACHES,), "full_attention": (_CACHES,), "sliding_attention": (_CACHES,), "conv": (_CONVOLUTIONS,),
    "hybrid": (*_RECURRENT, _CACHES), "linear_attention": _RECURRENT, "mamba": _RECURRENT,
}  # fmt: skip
"""Kind of layer in a configuration -> its states."""

# Type -> the keys of the length of its convolutions, and of the last dimension of its state spaces.
_OF_DELTA_RULE = ("linear_conv_kernel_dim", "linear_value_head_dim")
_SIZES = {
    "falcon_mamba": ("conv_kernel", "state_size"),
    "granitemoehybrid": ("mamba_d_conv", "mamba_d_state"),
    "lfm2": ("conv_L_cache", ""),
    "lfm2_moe": ("conv_L_cache", ""),
    "mamba": ("conv_kernel", "state_size"),
    "qwen3_5": _OF_DELTA_RULE,
    "qwen3_5_moe": _OF_DELTA_RULE,
    "qwen3_5_moe_text": _OF_DELTA_RULE,
    "qwen3_5_text": _OF_DELTA_RULE,
    "qwen3_next": _OF_DELTA_RULE,
    "zamba2": ("mamba_d_conv", "mamba_d_state"),
}
_ONLY_RECURRENT = ("falcon_mamba", "mamba")
_EVERY_LAYER = (*_ONLY_RECURRENT, "zamba2")
"""Types in which each layer has a state space."""

_LAYERS = ("num_hidden_layers", "n_layer", "num_layers")
_OTHER_LAYERS = ("block_configs", "cla_share_factor", "num_kv_shared_layers", "total_ut_steps")
"""Keys of models whose numbers of layers and caches differ."""


def contradiction(config: Mapping[str, Any], states: Mapping[str, Sequence[Any]], *, only_caches: bool = False) -> str:
    """Return how the states of a decoder contradict its configuration; empty if they do not.

    Args:
        config: config.json; that of the text part if it has several.
        states: the name of each variable, as optimum-intel writes it, with its dimensions. No dimensions are unknown ones.
        only_caches: whether key-value caches are the only states of models of the stated type.
    """
    shapes: dict[str, list[Sequence[Any]]] = {}
    for name, dims in states.items():
        for pattern, kind in _NAMES:
            if pattern.search(name):
                shapes.setdefault(kind, []).append(dims)
    if not shapes:
        return ""
    stated, found = config.get("model_type"), Counter({kind: len(every) for kind, every in shapes.items()})
    if stated not in _SIZES:
        layers = next((config[name] for name in _LAYERS if isinstance(config.get(name), int)), None)
        if only_caches and found.keys() != {_CACHES}:
            return f"models of the type {stated!r} have only key-value caches, but this model has {_counted(found)}"
        others = any(config.get(name) for name in _OTHER_LAYERS) or found.keys() != {_CACHES}
        if others or layers is None or layers == found[_CACHES]:
            return ""
        return f"it describes {_counted({'layer': layers})}, but the model has {_counted(found)}"
    if found[_SPACES] and not _SIZES[stated][1]:
        return f"models of the type {stated!r} have no state spaces, but the model has {_counted(found)}"
    expected, layers = _expected(config), config.get(_LAYERS[0])
    if expected is not None and expected != found:
        return f"it describes {_counted(expected)}, but the model has {_counted(found)}"
    total = found[_CONVOLUTIONS] + (0 if stated in _EVERY_LAYER else found[_CACHES])
    if expected is None and isinstance(layers, int) and layers != total:
        return f"it describes {_counted({'layer': layers})}, but the model has {_counted(found)}"
    for kind, key in zip(_RECURRENT, _SIZES[stated], strict=True):
        size, last = config.get(key), {dims[-1] for dims in shapes.get(kind, ()) if dims}
        # a convolution may keep one input less, because the next run provides the last one
        fitting = (size, size - 1) if isinstance(size, int) and kind == _CONVOLUTIONS else (size,)
        if isinstance(size, int) and (other := [one for one in last if isinstance(one, int) and one not in fitting]):
            return f"its {key} is {size}, but a {kind} of the model has {other[0]}"
    return ""


def _expected(config: Mapping[str, Any]) -> Counter[str] | None:
    """Return the number of states of each kind in a type of `_SIZES`; ``None`` if the configuration does not state it."""
    kind, layers = config.get("model_type"), config.get(_LAYERS[0])
    if kind in _ONLY_RECURRENT:
        return Counter(dict.fromkeys(_RECURRENT, layers)) if isinstance(layers, int) else None
    kinds = config.get("layers_block_type" if kind == "zamba2" else "layer_types")
    if not isinstance(kinds, list) or not all(isinstance(one, str) and one in _OF_LAYERS for one in kinds):
        return None
    if kind == "zamba2":
        kinds = ["hybrid" if one == "hybrid" else "mamba" for one in kinds]
    return Counter(state for one in kinds for state in _OF_LAYERS[one])


def _counted(numbers: Mapping[str, int]) -> str:
    """Return numbers as text, such as ``2 convolutions and 1 key-value cache``."""
    parts = [f"{number} {kind}{'' if number == 1 else 's'}" for kind, number in sorted(numbers.items())]
    return " and ".join(parts) if len(parts) < 3 else f"{', '.join(parts[:-1])} and {parts[-1]}"
