"""Tiny language models with random parameters, as optimum-intel exports them."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any, Literal

SIZE = 320
_COMMON: dict[str, Any] = {
    "vocab_size": SIZE, "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "max_position_embeddings": 128, "head_dim": 16, "bos_token_id": 0, "eos_token_id": 0,
    "pad_token_id": 0,
}  # fmt: skip
_GPT: dict[str, Any] = {
    "vocab_size": SIZE, "n_positions": 128, "n_embd": 64, "n_layer": 2, "n_head": 4, "bos_token_id": 0, "eos_token_id": 0,
}  # fmt: skip
_FALCON: dict[str, Any] = {
    "vocab_size": SIZE, "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "alibi": False,
}  # fmt: skip
_OPT: dict[str, Any] = {
    "ffn_dim": 96,
    "max_position_embeddings": 128,
    "bos_token_id": 0,
    "eos_token_id": 0,
    "pad_token_id": 1,
}
_EXPERTS: dict[str, Any] = {"num_local_experts": 4, "num_experts_per_tok": 2}
_SMALL_EXPERTS: dict[str, Any] = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32}
_ONE_KEY = {**_COMMON, "num_key_value_heads": 4}
_WINDOWS: dict[str, Any] = {"sliding_window": 6, "layer_types": ["sliding_attention", "full_attention"]}
_OF_HYBRIDS = {name: value for name, value in _COMMON.items() if name != "head_dim"}
_STATE_SPACE: dict[str, Any] = {
    "vocab_size": SIZE, "hidden_size": 64, "num_hidden_layers": 2, "state_size": 8, "expand": 2, "time_step_rank": 4,
    "conv_kernel": 4, "use_mambapy": False, "bos_token_id": 0, "eos_token_id": 0, "pad_token_id": 0,
}  # fmt: skip

CONFIGURATIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "llama": ("LlamaConfig", {**_COMMON, "attention_bias": True, "mlp_bias": True}),
    "llama-tied": ("LlamaConfig", {**_COMMON, "tie_word_embeddings": True}),
    "qwen2": ("Qwen2Config", _COMMON),
    "qwen3": ("Qwen3Config", _COMMON),
    "mistral": ("MistralConfig", _COMMON),
    "phi3": ("Phi3Config", {**_COMMON, "original_max_position_embeddings": 128}),
    "phi": ("PhiConfig", {**_ONE_KEY, "partial_rotary_factor": 0.5}),
    "gemma": ("GemmaConfig", _COMMON),
    "gemma2": ("Gemma2Config", {**_COMMON, "query_pre_attn_scalar": 16}),
    "cohere": ("CohereConfig", {**_COMMON, "logit_scale": 0.5}),
    "gpt2": ("GPT2Config", _GPT),
    "gptneox": ("GPTNeoXConfig", _ONE_KEY),
    "bloom": ("BloomConfig", {"vocab_size": SIZE, "hidden_size": 64, "n_layer": 2, "n_head": 4}),
    "stablelm": ("StableLmConfig", {**_COMMON, "use_qkv_bias": True}),
    "granite": ("GraniteConfig", _COMMON),
    "olmo2": ("Olmo2Config", _COMMON),
    "starcoder2": ("Starcoder2Config", _COMMON),
    "falcon": ("FalconConfig", {**_FALCON, "new_decoder_architecture": True, "num_kv_heads": 2, "bias": False}),
    "gptj": ("GPTJConfig", {**_GPT, "rotary_dim": 8}),
    "codegen": ("CodeGenConfig", {**_GPT, "rotary_dim": 8}),
    "mpt": ("MptConfig", {"vocab_size": SIZE, "d_model": 64, "n_heads": 4, "n_layers": 2, "max_seq_len": 128}),
    "persimmon": ("PersimmonConfig", _ONE_KEY),
    "cohere2": ("Cohere2Config", {**_COMMON, "logit_scale": 0.5}),
    "smollm3": ("SmolLM3Config", _COMMON),
    "glm4": ("Glm4Config", _COMMON),
    "lfm2-text": ("Lfm2Config", {**_COMMON, "layer_types": ["conv", "full_attention"]}),
    "opt": ("OPTConfig", {**_COMMON, **_OPT, "word_embed_proj_dim": 64}),
    "xglm": ("XGLMConfig", {"vocab_size": SIZE, "d_model": 64, "num_layers": 2, "attention_heads": 4, **_OPT}),
    "mixtral": ("MixtralConfig", {**_COMMON, **_EXPERTS}),
    "qwen2-moe": ("Qwen2MoeConfig", {**_COMMON, **_SMALL_EXPERTS, "shared_expert_intermediate_size": 48}),
    "qwen3-moe": ("Qwen3MoeConfig", {**_COMMON, **_SMALL_EXPERTS}),
    "granitemoe": ("GraniteMoeConfig", {**_COMMON, **_EXPERTS}),
    "phimoe": ("PhimoeConfig", {**_COMMON, **_EXPERTS}),
    "lfm2-moe-text": (
        "Lfm2MoeConfig",
        {**_COMMON, **_SMALL_EXPERTS, "layer_types": ["conv", "full_attention"], "num_dense_layers": 1},
    ),
    "gemma3-text": ("Gemma3TextConfig", {**_COMMON, **_WINDOWS}),
    "exaone4": ("Exaone4Config", {**_COMMON, **_WINDOWS}),
    "gpt-neo": (
        "GPTNeoConfig",
        {"vocab_size": SIZE, "hidden_size": 64, "num_layers": 2, "num_heads": 4, "window_size": 6,
         "attention_types": [[["global", "local"], 1]], "max_position_embeddings": 128, "bos_token_id": 0,
         "eos_token_id": 0},
    ),
    "glm": ("GlmConfig", {**_COMMON, "attention_bias": True}),
    "gpt-bigcode": ("GPTBigCodeConfig", _GPT),
    "mamba": ("MambaConfig", _STATE_SPACE),
    "falcon-mamba": ("FalconMambaConfig", {**_STATE_SPACE, "use_bias": True}),
    "granite-hybrid-text": (
        "GraniteMoeHybridConfig",
        {**_OF_HYBRIDS, "layer_types": ["mamba", "attention"], "num_local_experts": 0, "shared_intermediate_size": 64,
         "mamba_n_heads": 8, "mamba_d_head": 16, "mamba_d_state": 16, "mamba_n_groups": 2, "mamba_chunk_size": 16,
         "position_embedding_type": "rope"},
    ),
    "zamba2": (
        "Zamba2Config",
        {**_OF_HYBRIDS, "num_hidden_layers": 4, "layers_block_type": ["mamba", "hybrid", "mamba", "hybrid"],
         "num_key_value_heads": 4, "num_mem_blocks": 1, "adapter_rank": 8, "n_mamba_heads": 8, "mamba_d_state": 8,
         "mamba_ngroups": 1, "chunk_size": 16, "use_mem_rope": True},
    ),
}  # fmt: skip

Weights = Literal["float", "int8", "int4", "int4-asym", "int4-rows", "int4-int8"]
COMPRESSED: dict[str, tuple[str, Weights]] = {
    "llama-int8": ("llama", "int8"),
    "mamba-int8": ("mamba", "int8"),
    "gpt2-int8": ("gpt2", "int8"),
    "llama-int4": ("llama", "int4"),
    "phi3-int4-asym": ("phi3", "int4-asym"),
    "llama-int4-rows": ("llama", "int4-rows"),
    "qwen3-int4-int8": ("qwen3", "int4-int8"),
    "opt-int8": ("opt", "int8"),
    "qwen3-moe-int8": ("qwen3-moe", "int8"),
    "qwen3-moe-int4": ("qwen3-moe", "int4"),
    "mixtral-int4-asym": ("mixtral", "int4-asym"),
    "lfm2-moe-text-int4": ("lfm2-moe-text", "int4"),
}


def make_language_model(name: str, folder: Path) -> None:
    """Create the folder of one of `CONFIGURATIONS` or `COMPRESSED`, with weights as they are or compressed by NNCF."""
    make(*COMPRESSED.get(name, (name, "float")), folder)


def make(name: str, weights: Weights, folder: Path) -> None:
    """Create the folder of a model."""
    import torch
    import transformers
    from optimum.intel import OVModelForCausalLM, OVWeightQuantizationConfig

    torch.manual_seed(1)
    class_name, settings = CONFIGURATIONS[name]
    model = transformers.AutoModelForCausalLM.from_config(getattr(transformers, class_name)(**settings)).eval()
    with torch.no_grad():
        for key, parameter in model.named_parameters():  # norms and biases, too, because an IR omits values of 1 and 0
            draw = torch.randn_like(parameter)
            parameter.copy_(0.25 * draw if parameter.ndim > 1 else (1 if key.endswith("weight") else 0) + 0.2 * draw)
    how: dict[str, Any] = {"load_in_8bit": False}
    if weights == "int8":
        how = {"quantization_config": OVWeightQuantizationConfig(bits=8)}
    elif weights != "float":
        group, ratio = -1 if weights == "int4-rows" else 32, 0.5 if weights == "int4-int8" else 1.0
        config = OVWeightQuantizationConfig(bits=4, group_size=group, sym=weights != "int4-asym", ratio=ratio)
        how = {"quantization_config": config}
    with tempfile.TemporaryDirectory() as place:
        # tied parameters of shared modules cannot be saved as safetensors
        model.save_pretrained(place, **({"safe_serialization": False} if name == "zamba2" else {}))
        OVModelForCausalLM.from_pretrained(place, export=True, compile=False, **how).save_pretrained(folder)
