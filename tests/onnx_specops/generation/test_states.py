"""The states of a decoder that contradict its configuration."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from onnx_specops.generation.states import contradiction

GRANITE = {"model_type": "granitemoehybrid", "num_hidden_layers": 3, "layer_types": ["mamba", "attention", "mamba"]}
ZAMBA = {"model_type": "zamba2", "num_hidden_layers": 2, "layers_block_type": ["mamba", "hybrid"]}
LFM = {"model_type": "lfm2", "num_hidden_layers": 3, "layer_types": ["conv", "full_attention", "conv"]}
SIZES = {"mamba_d_conv": 4, "mamba_d_state": 16}


def states(convolutions: int = 0, spaces: int = 0, caches: int = 0, size: int = 16) -> dict[str, Sequence[Any]]:
    """Return the variables of a hybrid model, by the names of optimum-intel."""

    def name(kind: str, number: int) -> str:
        return f"cache_params.past.{kind}.{number}cache_params.present.{kind}.{number}"

    found: dict[str, Sequence[Any]] = {name("conv", number): (None, 128, 4) for number in range(convolutions)}
    found |= {name("ssm", number): ("", 8, 8, size) for number in range(spaces)}
    return found | {name(kind, number): (None, 2, None, 8) for number in range(caches) for kind in ("key", "value")}


def caches(number: int, name: str = "past_key_values.{0}.{1}present.{0}.{1}") -> dict[str, Sequence[Any]]:
    return {name.format(layer, kind): () for layer in range(number) for kind in ("key", "value")}


@pytest.mark.parametrize(
    ("config", "found"),
    [
        (GRANITE | SIZES, states(2, 2, 1)),
        (ZAMBA | SIZES, states(2, 2, 1)),
        (LFM | {"conv_L_cache": 4}, states(2, 0, 1)),
        (LFM | {"conv_L_cache": 5}, states(2, 0, 1)),
        ({"model_type": "mamba", "num_hidden_layers": 2, "conv_kernel": 4, "state_size": 16}, states(2, 2)),
        (GRANITE | {"layer_types": None}, states(2, 2, 1)),
        (ZAMBA | {"layers_block_type": None}, states(2, 2, 1)),
        (GRANITE | {"layer_types": None, "num_hidden_layers": None}, states(1, 1)),  # nothing is stated
        ({"model_type": "llama", "num_hidden_layers": 2}, caches(2)),
        ({"model_type": "gpt2", "n_layer": 2}, caches(2)),
        ({"model_type": "llama"}, caches(2)),
        ({"num_hidden_layers": 3, "num_kv_shared_layers": 1}, caches(2)),
        ({"model_type": "unheard_of", "num_hidden_layers": 3}, states(2, 2, 1)),
        ({"model_type": "llama", "num_hidden_layers": 3}, {"kept": (1, 1)}),  # states with other names
        ({"model_type": "t5", "num_layers": 2}, caches(2, "past_key_values.{0}.decoder.{1}present.{0}.decoder.{1}")),
    ],
)
def test_states_that_agree(config: dict[str, Any], found: dict[str, Sequence[Any]]) -> None:
    assert contradiction(config, found) == ""


@pytest.mark.parametrize(
    ("config", "found", "message"),
    [
        (ZAMBA, states(2, 2, 2), "describes 2 convolutions, 1 key-value cache and 2 state spaces, but the model has 2 conv"),
        (GRANITE | {"model_type": "zamba2"}, states(2, 2, 1), "it describes 3 layers, but the model has 2 convolutions, 1"),
        (ZAMBA | {"model_type": "granitemoehybrid"}, states(2, 2, 1), "it describes 2 layers, but the model has 2 convol"),
        (GRANITE | {"model_type": "mamba"}, states(2, 2, 1), "it describes 3 convolutions and 3 state spaces, but the mod"),
        (LFM, states(2, 2, 1), "models of the type 'lfm2' have no state spaces, but the model has 2 convolutions, 1 key-v"),
        (GRANITE | {"model_type": "lfm2"}, states(2, 2, 1), "models of the type 'lfm2' have no state spaces, but the model"),
        (LFM, states(1, 0, 1), "it describes 2 convolutions and 1 key-value cache, but the model has 1 convolution and 1"),
        (LFM, caches(3), "it describes 2 convolutions and 1 key-value cache, but the model has 3 key-value caches"),
        (GRANITE | SIZES, states(2, 2, 1, 12), "its mamba_d_state is 16, but a state space of the model has 12"),
        (LFM | {"conv_L_cache": 3}, states(2, 0, 1), "its conv_L_cache is 3, but a convolution of the model has 4"),
        ({"model_type": "llama", "num_hidden_layers": 3}, caches(2), "it describes 3 layers, but the model has 2 key-val"),
    ],
)
def test_states_of_another_model(config: dict[str, Any], found: dict[str, Sequence[Any]], message: str) -> None:
    assert message in contradiction(config, found)


def test_only_caches() -> None:
    config = {"model_type": "cohere", "num_hidden_layers": 2}
    assert contradiction(config, caches(2), only_caches=True) == ""
    assert "have only key-value caches, but this model has 2 conv" in contradiction(config, states(2), only_caches=True)
