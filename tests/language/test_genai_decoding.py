"""Decoding in onnxruntime-genai beyond greedy search: n-grams and draft models that propose tokens, and grammars."""

from __future__ import annotations

import json
import re
import shutil
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from converters.folders.genai import write_genai
from tests.language.test_speech import convert

genai = pytest.importorskip("onnxruntime_genai")

ARCHIVES = Path(__file__).parent / "models"
TEXT, LENGTH = "Once upon a time", 100
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"], "additionalProperties": False}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the conversions of two models with the same vocabulary, with all logits and with the last."""
    place = tmp_path_factory.mktemp("decoding")
    for name in ("phi3", "gpt2"):
        with zipfile.ZipFile(ARCHIVES / f"{name}.zip") as file:
            file.extractall(place / name)
        for logits in ("all", "last"):
            write_genai(place / name, place / f"{name}-{logits}", convert, logits=logits)
            shutil.copy(place / name / "tokenizer.json", place / f"{name}-{logits}")
    return place


def generated(folder: Path, search: dict[str, Any] | None = None, **speculative: Any) -> tuple[list[int], dict[str, Any]]:
    """Return the tokens, and the statistics of speculation."""
    model = genai.Model(str(folder))
    parameters = genai.GeneratorParams(model)
    parameters.set_search_options(do_sample=False, max_length=LENGTH, min_length=LENGTH, **(search or {}))
    if speculative:
        parameters.set_speculative_options(**speculative)
    generator = genai.Generator(model, parameters)
    generator.append_tokens(genai.Tokenizer(model).encode(TEXT))
    while not generator.is_done():
        generator.generate_next_token()
    return generator.get_sequence(0).tolist(), generator.get_speculative_stats()


def with_draft(target: Path, draft: Path, folder: Path) -> Path:
    """Return a folder with a second model that proposes tokens."""
    shutil.copytree(target, folder)
    shutil.copy(draft / "model.onnx", folder / "draft.onnx")
    config = json.loads((target / "genai_config.json").read_text())
    own = json.loads((draft / "genai_config.json").read_text())["model"]["decoder"]
    config["model"]["draft"] = {**own, "filename": "draft.onnx"}
    (folder / "genai_config.json").write_text(json.dumps(config))
    return folder


@pytest.mark.parametrize("name", ["phi3", "gpt2"])
@pytest.mark.parametrize(
    "options", [{"ngram_size": 2}, {"ngram_size": 2, "ngram_chained_lookup": True, "max_draft_tokens": 6}]
)
def test_ngrams_propose_tokens(place: Path, name: str, options: dict[str, Any]) -> None:
    expected, _ = generated(place / f"{name}-all")
    found, stats = generated(place / f"{name}-all", **options)
    assert found == expected and len(found) == LENGTH
    assert stats["draft_tokens_accepted"] > 0


def test_ngrams_require_all_logits(place: Path) -> None:
    with pytest.raises(Exception, match="requires target logits for every verified token"):
        generated(place / "phi3-last", ngram_size=2)


def test_a_draft_model_proposes_tokens(place: Path, tmp_path: Path) -> None:
    expected, _ = generated(place / "phi3-all")
    for draft, all_accepted in (("phi3-all", True), ("gpt2-all", False)):
        found, stats = generated(with_draft(place / "phi3-all", place / draft, tmp_path / draft))
        assert found == expected
        assert stats["draft_tokens_proposed"] > 0
        assert (stats["draft_tokens_accepted"] == stats["draft_tokens_evaluated"]) == all_accepted


@pytest.mark.parametrize(
    ("kind", "grammar", "fits"),
    [
        ("json_schema", json.dumps(SCHEMA), lambda text: isinstance(json.loads(text)["n"], int)),
        ("regex", "[ab]{4,6}", lambda text: re.fullmatch("[ab]{4,6}", text)),
        ("lark_grammar", 'start: "yes" | "no"', lambda text: text in ("yes", "no")),
    ],
)
def test_grammars_restrict_the_text(place: Path, kind: str, grammar: str, fits: Any) -> None:
    model = genai.Model(str(place / "phi3-last"))
    tokenizer = genai.Tokenizer(model)
    parameters = genai.GeneratorParams(model)
    parameters.set_search_options(do_sample=False, max_length=128)
    parameters.set_guidance(kind, grammar)
    generator = genai.Generator(model, parameters)
    prompt = tokenizer.encode(TEXT)
    generator.append_tokens(prompt)
    while not generator.is_done():
        generator.generate_next_token()
    assert fits(tokenizer.decode(generator.get_sequence(0)[len(prompt) :]))


def test_adapters_need_inputs_that_an_ir_lacks(place: Path) -> None:
    """LoRA adapters must be merged before the export, as docs/language-models.md states."""
    ort = pytest.importorskip("onnxruntime")
    adapter = ort.AdapterFormat()
    adapter.set_adapter_version(1)
    adapter.set_model_version(1)
    adapter.set_parameters({"lora_A.weight": ort.OrtValue.ortvalue_from_numpy(np.zeros((4, 4), np.float32))})
    adapter.export_adapter(str(place / "one.onnx_adapter"))
    model = genai.Model(str(place / "phi3-last"))
    adapters = genai.Adapters(model)
    adapters.load(str(place / "one.onnx_adapter"), "one")
    parameters = genai.GeneratorParams(model)
    parameters.set_search_options(max_length=LENGTH)
    generator = genai.Generator(model, parameters)
    generator.set_active_adapter(adapters, "one")
    with pytest.raises(RuntimeError, match=r"Invalid input name: lora_A\.weight"):
        generator.append_tokens([5, 6, 7])
