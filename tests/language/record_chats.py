"""Create tests/language/chats.json and tests/language/sampling.json.

The former has chat templates of real models with transformers' results for conversations. The latter has the tokens that
OpenVINO GenAI draws with the models of tests/language/models.

Run with transformers, openvino_genai and openvino_tokenizers installed:

    python -m tests.language.record_chats
"""

from __future__ import annotations

import json
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
CHATS, SAMPLING = HERE / "chats.json", HERE / "sampling.json"

TEMPLATES = {
    "marked": "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' "
    "+ '\\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}",
    "alternating": "{{ bos_token }}{% if messages[0]['role'] == 'system' %}"
    "{% set first = messages[0]['content'] + '\\n\\n' %}{% set rest = messages[1:] %}"
    "{% else %}{% set first = '' %}{% set rest = messages %}{% endif %}"
    "{% for message in rest %}{% if (message['role'] == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('Roles must alternate user/assistant') }}{% endif %}"
    "{% if message.role == 'user' %}{{ '[INST] ' + (first if loop.first else '') + message.content | trim + ' [/INST]' }}"
    "{% else %}{{ ' ' + message.content + eos_token }}{% endif %}{% endfor %}",
    "of blocks": """{%- if tools is not none %}
    {{- 'tools: ' ~ tools | tojson }}
{%- endif %}
{% macro show(message) %}
  <{{ message.role }}>
    {{- message.content }}
  </{{ message.role }}>
{% endmacro %}
{% for message in messages %}
    {% if message.role == 'assistant' %}
        {% generation %}{{ show(message) }}{% endgeneration %}
    {% else %}
{{ show(message) }}
    {% endif %}
    {% if loop.index > 5 %}{% break %}{% endif %}
{% endfor %}
{{ {'prompt': add_generation_prompt, 'letters': 'ä<é>'} | tojson(indent=2) }}
""",
}
CONVERSATIONS: list[list[dict[str, str]]] = [
    [{"role": "user", "content": " Once upon a time "}],
    [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Who are you?\nTell me."}],
    [
        {"role": "user", "content": "1 + 1?"},
        {"role": "assistant", "content": "2 </s> <b>ü</b>"},
        {"role": "user", "content": "'Quoted' & \"quoted\""},
    ],
    [{"role": "user", "content": "a"}, {"role": "user", "content": "b"}],
]
TOKENS = {"bos_token": "<s>", "eos_token": "</s>"}

MODELS = ("llama", "qwen2", "gpt2")
SETTINGS: list[dict[str, Any]] = [
    {},
    {"top_k": 1},
    {"top_k": 5},
    {"top_k": 37},
    {"top_k": 320},
    {"top_p": 0.6},
    {"min_p": 0.05},
    {"temperature": 2.0, "top_k": 50, "top_p": 0.9, "min_p": 0.01},
    {"temperature": 0.5, "repetition_penalty": 1.3},
    {"presence_penalty": 1.5, "frequency_penalty": 0.7},
    {"do_sample": False, "repetition_penalty": 1.2, "presence_penalty": 0.5},
]
SEEDS = (0, 1, 4294967295)
PROMPT, COUNT = [5, 17, 200, 33, 33, 98], 24


def chats() -> list[dict[str, Any]]:
    """Return transformers' result for each conversation and template; ``None`` if it fails."""
    from transformers.utils.chat_template_utils import render_jinja_template

    found = []
    for name, template in TEMPLATES.items():
        for messages in CONVERSATIONS:
            try:
                more = {"add_generation_prompt": True, **TOKENS}
                (text,), _ = render_jinja_template(conversations=[messages], chat_template=template, **more)
            except Exception:
                text = None
            found.append({"template": name, "messages": messages, "text": text})
    return found


def drawn() -> list[dict[str, Any]]:
    """Return OpenVINO GenAI's tokens for each model, setting and seed, including the end token."""
    import openvino as ov
    import openvino_genai as genai

    exact = {"INFERENCE_PRECISION_HINT": "f32", "KV_CACHE_PRECISION": "f32", "DYNAMIC_QUANTIZATION_GROUP_SIZE": "0"}
    found = []
    for name in MODELS:
        with tempfile.TemporaryDirectory() as place:
            with zipfile.ZipFile(HERE / "models" / f"{name}.zip") as file:
                file.extractall(place)
            pipeline = genai.LLMPipeline(place, "CPU", ATTENTION_BACKEND="SDPA", **exact)
            for settings in SETTINGS:
                for seed in SEEDS:
                    config = genai.GenerationConfig()
                    config.max_new_tokens, config.apply_chat_template = COUNT, False
                    told = {"do_sample": True, "top_k": 2**63 - 1, "top_p": 1.0, "rng_seed": seed, **settings}
                    for key, value in told.items():
                        setattr(config, key, value)
                    tokens = pipeline.generate(ov.Tensor(np.array([PROMPT], np.int64)), config).tokens[0]
                    found.append({"model": name, "settings": settings, "seed": seed, "tokens": list(tokens)})
            del pipeline
    return found


def _write(path: Path, rows: list[dict[str, Any]]) -> None:
    lines = ",\n ".join(json.dumps(row) for row in rows)
    path.write_text(f"[{lines}]\n")


if __name__ == "__main__":
    _write(CHATS, chats())
    _write(SAMPLING, drawn())
