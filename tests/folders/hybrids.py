"""Tiny models of attention with convolutions or recurrences, as tests/language/record_models.py recorded them."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import numpy as np

ARCHIVES = Path(__file__).parents[1] / "language" / "hybrids"
NAMES = {
    "granite-hybrid": "granite_hybrid", "granite-hybrid-int4": "granite_hybrid_int4", "lfm2": "lfm2", "lfm2-moe": "lfm2_moe",
    "qwen3.5-text": "qwen3_5", "qwen3.5-text-int8": "qwen3_5_int8", "qwen3.5-moe-text": "qwen3_5_moe",
}  # fmt: skip
"""Names, and those of the archives."""

WITH_BEAMS = ("lfm2", "lfm2-moe")

BEAMS = 3


def unpack(name: str, folder: Path) -> None:
    """Create the recorded folder."""
    with zipfile.ZipFile(ARCHIVES / f"{NAMES[name]}.zip") as file:
        file.extractall(folder)


def generated(folder: Path, prompts: list[list[int]], count: int, beams: int = 1) -> list[list[int]]:
    """Return the tokens of onnxruntime-genai for prompts of the same length."""
    import onnxruntime_genai as genai

    model = genai.Model(str(folder))
    parameters = genai.GeneratorParams(model)
    length = len(prompts[0])
    sizes = {"max_length": length + count, "min_length": length + count, "batch_size": len(prompts)}
    parameters.set_search_options(**sizes, do_sample=False, num_beams=beams)
    generator = genai.Generator(model, parameters)
    generator.append_tokens(np.array(prompts, np.int32))
    while not generator.is_done():
        generator.generate_next_token()
    return [generator.get_sequence(row).tolist()[length:] for row in range(len(prompts))]


def differing(source: Path, target: Path, search: str) -> int:
    """Return the number of tokens that differ from those of OpenVINO, greedily or with beams."""
    expected = json.loads((source / "expected.json").read_text())
    if search == "beams":
        pairs = [(expected["beams"], generated(target, expected["prompts"][:1], len(expected["beams"]), BEAMS)[0])]
    else:
        until = [tokens[: tokens.index(0)] if 0 in tokens else tokens for tokens in expected["greedy"]]  # the end token
        found = (generated(target, [prompt], len(row))[0] for prompt, row in zip(expected["prompts"], until, strict=True))
        pairs = list(zip(until, found, strict=True))
    return sum(one != other for row, rest in pairs for one, other in zip(row, rest, strict=True))
