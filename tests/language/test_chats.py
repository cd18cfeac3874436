"""Sampling like OpenVINO GenAI, chat templates like transformers, and stop words."""

from __future__ import annotations

import json
import zipfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from converters.folders.genai import write_genai
from converters.folders.tokenizers import write_tokenizers
from converters.openvino import convert
from onnx_specops.generation import GenerationError, LanguageModel, Sampling
from onnx_specops.generation.chat import ChatTemplate
from onnx_specops.generation.sampling import Sampler, below_one, until
from onnx_specops.generation.tokenizer import around
from tests.converters.cli.specops import as_json, specops
from tests.language.record_chats import CHATS, COUNT, MODELS, PROMPT, SAMPLING, SETTINGS, TEMPLATES, TOKENS
from tests.native import needs_pcre2

ARCHIVES = Path(__file__).parent / "models"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("chats")


@cache
def folder(name: str, place: Path) -> Path:
    with zipfile.ZipFile(ARCHIVES / f"{name}.zip") as file:
        file.extractall(place / name)
    write_genai(place / name, place / f"{name}.genai", convert)
    write_tokenizers(place / name, place / f"{name}.genai", convert)
    return place / f"{name}.genai"


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
@pytest.mark.parametrize("name", MODELS)
def test_tokens_equal_openvino_genai(name: str, settings: dict[str, Any], place: Path) -> None:
    model = LanguageModel(folder(name, place))
    rows = [row for row in json.loads(SAMPLING.read_text()) if row["model"] == name and row["settings"] == settings]
    assert len(rows) == 3
    for row in rows:
        sampling = Sampling(**{"do_sample": True, "seed": row["seed"], **settings})
        wanted = [token for token in row["tokens"] if token not in model.ends]
        assert list(model.generate(PROMPT, COUNT, sampling)) == wanted


def test_a_draw_equals_std_mt19937() -> None:
    """std::mt19937 with its default seed, 5489: its first number is 3499211612."""
    draws = np.random.MT19937()
    draws._legacy_seeding(5489)
    assert draws.random_raw() == 3499211612
    assert below_one(0) == 0 and below_one(2**31) == 0.5 and below_one(2**32 - 1) < 1


def test_frequencies_of_draws_match_probabilities() -> None:
    logits = np.log(np.array([0.5, 0.3, 0.15, 0.05], np.float32))
    sampler = Sampler(Sampling(do_sample=True, seed=3))
    counts = np.bincount([sampler.choose(logits) for _ in range(4000)], minlength=4)
    assert np.abs(counts / 4000 - [0.5, 0.3, 0.15, 0.05]).max() < 0.03
    narrow = Sampler(Sampling(do_sample=True, top_p=0.6))
    assert {narrow.choose(logits) for _ in range(200)} == {0, 1}
    scarce = Sampler(Sampling(do_sample=True, min_p=0.5))
    assert {scarce.choose(logits) for _ in range(200)} == {0, 1}


def test_forbidden_tokens_are_not_drawn() -> None:
    logits = np.array([-np.inf, 1.0, -np.inf, 0.5], np.float32)
    for settings in ({}, {"top_k": 3}, {"top_p": 0.9}, {"min_p": 0.1, "top_k": 4}):
        sampler = Sampler(Sampling(do_sample=True, **settings))
        assert {sampler.choose(logits) for _ in range(100)} == {1, 3}
    assert Sampler(Sampling(do_sample=True)).choose(np.full(3, -np.inf, np.float32)) in range(3)


@pytest.mark.parametrize(
    ("temperature", "found"), [(1e-320, {2}), (1e-40, {2}), (1e46, {1, 2}), (float("inf"), {1, 2})], ids=str
)
def test_temperatures_outside_float32(temperature: float, found: set[int]) -> None:
    """The lowest choose the most likely token, and the highest each allowed token."""
    sampler = Sampler(Sampling(do_sample=True, temperature=temperature))
    logits = np.array([-np.inf, 1.0, 1.5, -np.inf], np.float32)
    assert {sampler.choose(logits) for _ in range(100)} == found


@pytest.mark.parametrize(
    "settings",
    [{"temperature": 0}, {"top_k": -1}, {"top_p": 0}, {"top_p": 1.1}, {"min_p": 1}, {"repetition_penalty": 0}, {"seed": -1},
     {"presence_penalty": 3}, {"temperature": float("nan")}],
    ids=str,
)  # fmt: skip
def test_invalid_settings(settings: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=next(iter(settings))):
        Sampling(**settings)


@pytest.mark.parametrize("form", ["file", "configuration", "named", "old file"])
def test_conversations_equal_transformers(form: str, tmp_path: Path) -> None:
    for row in json.loads(CHATS.read_text()):
        template, settings = TEMPLATES[row["template"]], dict[str, Any](TOKENS)
        if form == "configuration":
            settings["chat_template"] = template
        elif form == "named":
            settings["chat_template"] = [{"name": "tool_use", "template": "-"}, {"name": "default", "template": template}]
        elif form == "old file":
            (tmp_path / "chat_template.json").write_text(json.dumps({"chat_template": template}))
        else:
            (tmp_path / "chat_template.jinja").write_text(template)
        settings["eos_token"] = {"content": settings["eos_token"], "lstrip": False}
        (tmp_path / "tokenizer_config.json").write_text(json.dumps(settings))
        if row["text"] is None:
            with pytest.raises(GenerationError, match="rejects this conversation"):
                ChatTemplate(tmp_path).render(row["messages"])
        else:
            assert ChatTemplate(tmp_path).render(row["messages"]) == row["text"]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{% if %}", "is not a valid chat template"),
        ("{{ messages.append(1) }}", "rejects this conversation"),  # templates are not trusted
        ("{{ ''.__class__.__mro__ }}", "rejects this conversation"),
        ("{{ missing.of.nothing }}", "rejects this conversation"),
        ("{{ 1 // 0 }}", "rejects this conversation"),
    ],
)
def test_invalid_templates(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "chat_template.jinja").write_text(text)
    with pytest.raises(GenerationError, match=said):
        ChatTemplate(tmp_path).render([{"role": "user", "content": "x"}])


@pytest.mark.parametrize(
    ("settings", "text"),
    [({}, "<B>|<E>"), ({"eos_token": "<end>"}, "<B>|<E>"), ({"added_tokens_decoder": {}}, "|")],
)
def test_special_tokens_of_older_folders(settings: dict[str, Any], text: str, tmp_path: Path) -> None:
    """As in transformers 5.2, special_tokens_map.json takes precedence unless tokenizer_config.json lists all tokens."""
    stated = {"chat_template": "{{ bos_token }}|{{ eos_token }}", **settings}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(stated))
    (tmp_path / "special_tokens_map.json").write_text('{"bos_token": "<B>", "eos_token": {"content": "<E>"}}')
    assert ChatTemplate(tmp_path).render([]) == text


def test_a_folder_without_a_template(tmp_path: Path) -> None:
    with pytest.raises(GenerationError, match="has no chat template"):
        ChatTemplate(tmp_path)


@pytest.mark.parametrize(
    ("pieces", "stops", "text"),
    [
        (["Once ", "upon", " a time"], [], "Once upon a time"),
        (["Once ", "upon", " a time"], ["upon"], "Once "),
        (["Once u", "po", "n a time"], ["upon"], "Once "),
        (["Once upo", "st"], ["upon"], "Once upost"),
        (["Once up", "upon"], ["upon"], "Once up"),
        (["a time", ""], ["time", "a t"], ""),
        (["ab", "ab", "ac"], ["abac"], "ab"),
        (["Once upo"], ["upon"], "Once upo"),
    ],
)
def test_a_text_ends_before_a_stop_word(pieces: list[str], stops: list[str], text: str) -> None:
    found = list(until(pieces, stops))
    assert "".join(found) == text and all(found)


def test_nothing_is_generated_after_a_stop_word() -> None:
    taken: list[str] = []

    def pieces() -> Any:
        for piece in ("one ", "two ", "three ", "four "):
            taken.append(piece)
            yield piece

    assert "".join(until(pieces(), ["two"])) == "one " and taken == ["one ", "two "]


@pytest.mark.parametrize(
    ("empty", "some", "found"),
    [([], [7], (0, 0)), ([1], [1, 7], (1, 0)), ([2, 3], [2, 7, 3], (1, 1)), ([3], [7, 3], (0, 1)), ([9], [7], (0, 0))],
)
def test_tokens_that_a_tokenizer_adds(empty: list[int], some: list[int], found: tuple[int, int]) -> None:
    assert around(empty, some) == found


@needs_pcre2
def test_the_command(place: Path, tmp_path: Path) -> None:
    ready = folder("llama", place)
    model = LanguageModel(ready)
    greedy = "".join(model.write("Once upon a time", 24))
    stop = greedy[8:11]
    told = as_json(specops("generate", ready, "Once upon a time", "--tokens", 24, "--stop", stop, "--json"))
    assert told["text"] == greedy[: greedy.index(stop)]
    assert told["tokens"] == len(told["ids"]) < 24
    drawn = as_json(specops("generate", ready, "Once upon a time", "--seed", 3, "--top-k", 9, "--json"))
    sampling = Sampling(do_sample=True, seed=3, top_k=9)
    assert drawn["ids"] == list(model.generate(model.encode("Once upon a time"), 64, sampling)) != told["ids"]
    for arguments in (["--temperature", "0", "--top-k", 9], ["--repetition-penalty", 1]):
        same = as_json(specops("generate", ready, "Once upon a time", "--tokens", 24, *arguments, "--json"))
        assert same["text"] == greedy


@needs_pcre2
def test_conversations_on_the_command_line(place: Path, tmp_path: Path) -> None:
    ready = folder("llama", place)
    result = specops("generate", ready, "Hello", "--chat")
    assert result.exit_code == 2 and "has no chat template" in result.stderr
    (ready / "chat_template.jinja").write_text("{% for one in messages %}{{ one.content }}|{% endfor %}")
    try:
        model = LanguageModel(ready)
        messages = [{"role": "system", "content": "Be"}, {"role": "user", "content": "Hello"}]
        first = "".join(model.chat(messages, 8))
        result = specops("generate", ready, "Hello", "--chat", "--system", "Be", "--tokens", 8)
        assert result.stdout == f"{first}\n" and "tokens/s" in result.stderr
        messages += [{"role": "assistant", "content": first}, {"role": "user", "content": "And?"}]
        second = "".join(model.chat(messages, 8))
        result = specops("generate", ready, "--chat", "--system", "Be", "--tokens", 8, input="Hello\n\nAnd?\n")
        assert result.stdout == f"{first}\n{second}\n"
    finally:
        (ready / "chat_template.jinja").unlink()


@pytest.mark.parametrize(
    "arguments",
    [[], ["x", "--system", "y"], ["x", "--stop", ""], ["x", "--top-p", "2"], ["--chat", "--json"], ["x", "--min-p", "1"]],
    ids=str,
)
def test_invalid_options(arguments: list[str], tmp_path: Path) -> None:
    assert specops("generate", tmp_path, *arguments).exit_code == 2


@needs_pcre2
def test_a_text_from_standard_input(place: Path) -> None:
    told = as_json(specops("generate", folder("llama", place), "-", "--tokens", 4, "--json", input="Once upon a time"))
    assert told["prompt"] == "Once upon a time" and told["tokens"] == 4
