"""Language models give OpenVINO's tokens: in a stateful session, in onnxruntime-genai, and as text."""

from __future__ import annotations

import json
import shutil
import zipfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest

import onnx_specops
from converters.errors import ConversionError
from converters.folders.genai import needed_library, write_genai
from converters.folders.tokenizers import write_tokenizers
from converters.openvino import convert
from converters.passes.attention import genai as expose
from converters.passes.attention.canonical import UnsupportedAttention
from onnx_specops.generation import GenerationError, LanguageModel, Sampling
from onnx_specops.runtime.library import has_library
from onnx_specops.runtime.reference import reference_evaluator
from tests.converters.cli.specops import specops

ARCHIVES = Path(__file__).parent / "models"
NAMES = sorted(path.stem for path in ARCHIVES.glob("*.zip"))
KEPT = {
    "bloom": "its mask differs between heads",
}
"""The models with unsupported attention, with the reason."""


@pytest.fixture(scope="module")
def place(shared: Path) -> Path:
    return shared


@cache
def folders(name: str, place: Path) -> tuple[Path, Path, Any]:
    """Return the folder of a model, its conversion, and the report."""
    source, target = place / name, place / f"{name}.genai"
    with zipfile.ZipFile(ARCHIVES / f"{name}.zip") as file:
        file.extractall(source)
    written = write_genai(source, target, convert)
    return source, target, written


def expected(name: str) -> dict[str, Any]:
    with zipfile.ZipFile(ARCHIVES / f"{name}.zip") as file:
        found: dict[str, Any] = json.loads(file.read("expected.json"))
    return found


@pytest.mark.parametrize("name", NAMES)
def test_attention_over_a_cache_is_grouped_query_attention(name: str, place: Path) -> None:
    _, target, written = folders(name, place)
    decoder = written.report.decoder
    operators = [node.op_type for node in onnx.load(target / "model.onnx").graph.node]
    assert operators.count("GroupQueryAttention") == decoder.grouped
    if name in KEPT:
        assert decoder.grouped == 0 and not decoder.in_place
        assert any(KEPT[name] in remark for remark in written.remarks)
    else:
        assert decoder.grouped == decoder.layers == 2 and decoder.in_place
        assert decoder.rotated == (0 if name in ("gpt2", "gptneox") else 2)
        assert list(decoder.kept) == (
            ["ONNX Runtime does not support the rotation of 8 of 16 elements"] if name == "gptneox" else []
        )


@pytest.mark.parametrize("name", NAMES)
def test_a_stateful_session_gives_openvinos_tokens(name: str, place: Path) -> None:
    _, target, _ = folders(name, place)
    model = LanguageModel(target)
    model.ends = frozenset()
    wanted = expected(name)
    for prompt, tokens in zip(wanted["prompts"], wanted["greedy"], strict=True):
        assert list(model.generate(prompt, len(tokens))) == tokens


@pytest.mark.parametrize("name", NAMES)
def test_a_conversation_reuses_the_cache(name: str, place: Path) -> None:
    """Its tokens equal those of a session that computes everything again."""
    _, target, _ = folders(name, place)
    model, anew = LanguageModel(target), LanguageModel(target)
    model.ends = anew.ends = frozenset()
    prompt = expected(name)["prompts"][0]
    given = list(model.generate(prompt, 6))
    runs, run = [], model._session.run
    model._session.run = lambda names, feeds: runs.append(feeds["input_ids"].shape[1]) or run(names, feeds)  # type: ignore[method-assign]
    for turn in ([*prompt, *given, 9, 8, 7], [*prompt, *given, 9], [*prompt[:3], 4]):
        assert list(model.generate(turn, 6)) == list(anew.generate([*turn], 6))
        anew._held = []
    # the last returned token is not in the cache; later less is requested
    assert runs[0] == 4 and runs[6] == len(prompt) + 7


_PROMPT = [1, 220, 26, 178, 1]


@pytest.mark.parametrize(
    ("settings", "tokens"),
    [
        ({}, [114, 220, 120, 14, 114, 220, 107, 85, 317, 104]),
        ({"repetition_penalty": 3.0}, [114, 32, 203, 206, 268, 184, 133, 112, 208, 212]),
        ({"repetition_penalty": 0.4}, [114, 220, 114, 220, 114, 220, 114, 220, 114, 220]),
        ({"no_repeat_ngram_size": 1}, [114, 32, 203, 206, 268, 184, 133, 112, 208, 212]),
        (
            {"no_repeat_ngram_size": 2, "bad_words_ids": [[220], [14, 114]]},
            [114, 32, 114, 48, 198, 278, 133, 112, 133, 32],
        ),
        (
            {"suppress_tokens": [114], "begin_suppress_tokens": [220]},
            [172, 39, 95, 287, 56, 118, 178, 222, 307, 66],
        ),
        (
            {"min_new_tokens": 4, "min_length": 20, "eos_token_id": 120},
            [114, 220, 10, 220, 252, 143, 24, 172, 90, 111],
        ),
        ({"min_length": 9, "eos_token_id": 120}, [114, 220, 10, 220, 252, 143, 24, 172, 90, 111]),
        ({"min_length": 7, "eos_token_id": 120}, [114, 220]),
        ({"forced_eos_token_id": 33}, [114, 220, 120, 14, 114, 220, 107, 85, 317, 33]),
        ({"encoder_repetition_penalty": 3.0}, [114, 220, 178, 220, 178, 220, 178, 220, 220, 178]),
        ({"encoder_no_repeat_ngram_size": 1}, [114, 32, 114, 48, 198, 278, 133, 112, 133, 32]),
    ],
)
def test_settings_of_generation_config_apply(
    settings: dict[str, Any], tokens: list[int], place: Path, tmp_path: Path
) -> None:
    """The tokens are those of transformers with OpenVINO."""
    source, _, _ = folders("llama", place)
    shutil.copytree(source, tmp_path / "model")
    (tmp_path / "model" / "generation_config.json").write_text(json.dumps({"eos_token_id": 0, **settings}))
    write_genai(tmp_path / "model", tmp_path / "out", convert)
    model = LanguageModel(tmp_path / "out")
    assert list(model.generate(_PROMPT, 10)) == tokens


def test_a_penalty_replaces_that_of_generation_config(place: Path, tmp_path: Path) -> None:
    _, target, _ = folders("llama", place)
    shutil.copytree(target, tmp_path / "out")
    (tmp_path / "out" / "generation_config.json").write_text('{"repetition_penalty": 3.0}')
    model = LanguageModel(tmp_path / "out")
    unchanged = [114, 220, 120, 14, 114, 220, 107, 85, 317, 104]
    assert list(model.generate(_PROMPT, 10, Sampling(repetition_penalty=1.0))) == unchanged
    lower = [114, 220, 114, 220, 114, 220, 114, 220, 114, 220]
    assert list(model.generate(_PROMPT, 10, Sampling(repetition_penalty=0.4))) == lower
    result = specops("generate", tmp_path / "out", "Once", "--tokens", 4, "--repetition-penalty", 1, "--json")
    assert result.exit_code == 0, result.stderr


@pytest.mark.parametrize(
    "settings",
    [
        [], {"bad_words_ids": [1]}, {"min_length": [1]}, {"suppress_tokens": {"a": 1}},
        *({"repetition_penalty": value} for value in ("x", 0, -1, float("nan"), float("inf"))),
    ],
)  # fmt: skip
def test_invalid_settings_of_generation_config(settings: Any, place: Path, tmp_path: Path) -> None:
    _, target, _ = folders("llama", place)
    shutil.copytree(target, tmp_path / "out")
    (tmp_path / "out" / "generation_config.json").write_text(json.dumps(settings))
    with pytest.raises(GenerationError, match=r"generation_config\.json"):
        LanguageModel(tmp_path / "out")


def test_two_texts_at_a_time_are_rejected(place: Path) -> None:
    _, target, _ = folders("llama", place)
    model = LanguageModel(target)
    first = model.generate([5, 6], 6)
    next(first)
    assert len(list(model.generate([7, 8], 6))) == 6
    with pytest.raises(GenerationError, match="another text was started"):
        next(first)


@pytest.mark.parametrize("name", NAMES)
def test_onnxruntime_genai_gives_openvinos_tokens(name: str, place: Path) -> None:
    import onnxruntime_genai as genai

    _, target, _ = folders(name, place)
    wanted = expected(name)
    model = genai.Model(str(target))
    fill = json.loads((target / "genai_config.json").read_text())["model"]["pad_token_id"]

    def generated(prompts: list[list[int]], count: int, **options: Any) -> list[list[int]]:
        longest = max(map(len, prompts))
        parameters = genai.GeneratorParams(model)
        # Texts that end are padded to the same length, to compare them completely.
        length = longest + count
        parameters.set_search_options(max_length=length, min_length=length, batch_size=len(prompts), **options)
        generator = genai.Generator(model, parameters)
        generator.append_tokens(np.array([p + [fill] * (longest - len(p)) for p in prompts], np.int32))
        while not generator.is_done():
            generator.generate_next_token()
        return [generator.get_sequence(row).tolist()[longest:] for row in range(len(prompts))]

    end = 0
    for prompts, tokens in [
        *(([prompt], [found]) for prompt, found in zip(wanted["prompts"], wanted["greedy"], strict=True)),
        (wanted["prompts"], wanted["greedy"]),
    ]:
        for got, found in zip(generated(prompts, 24), tokens, strict=True):
            until = found.index(end) if end in found else len(found)  # no text ends before its length is reached
            assert got[:until] == found[:until]
    assert generated(wanted["prompts"][:1], 12, num_beams=3)[0] == wanted["beams"]


SURE = {"float16": 24, "uint8": 16}
"""The tokens of random weights, whose most likely tokens are close, also with such a cache."""


@cache
def compressed(kind: str, place: Path) -> Path:
    """Return a model with the given cache."""
    source, _, _ = folders("llama", place)
    target = place / f"llama.{kind}"
    written = write_genai(source, target, convert, kind)
    assert written.report.decoder.cache == kind and any(f"the cache is {kind}" in remark for remark in written.remarks)
    return target


@pytest.mark.parametrize("kind", ["float16", "uint8"])
def test_a_smaller_cache_gives_openvinos_tokens(kind: str, place: Path) -> None:
    target = compressed(kind, place)
    operators = [node.op_type for node in onnx.load(target / "model.onnx").graph.node]
    assert operators.count("GroupQueryAttentionCompressed") == 2 and "GroupQueryAttention" not in operators
    wanted = expected("llama")
    for kernels in ("auto", "none"):
        model = LanguageModel(target, kernels=kernels)
        model.ends = frozenset()
        for prompt, tokens in zip(wanted["prompts"], wanted["greedy"], strict=True):
            assert list(model.generate(prompt, len(tokens)))[: SURE[kind]] == tokens[: SURE[kind]]


@pytest.mark.parametrize("kind", ["float16", "uint8"])
def test_a_smaller_cache_in_onnxruntime_genai(kind: str, place: Path, tmp_path: Path) -> None:
    import onnxruntime_genai as genai

    target = compressed(kind, place)
    config = json.loads((target / "genai_config.json").read_text())
    library = config["model"]["decoder"]["session_options"].get("custom_ops_library")
    assert (library is not None and (target / library).is_file()) == has_library()
    wanted = expected("llama")
    model = genai.Model(str(target))
    config["model"]["decoder"]["session_options"].pop("custom_ops_library", None)
    (tmp_path / "genai_config.json").write_text(json.dumps(config))
    (tmp_path / "model.onnx").symlink_to(target / "model.onnx")
    by_bodies = genai.Model(str(tmp_path))

    def generated(model: genai.Model, prompt: list[int], count: int, **options: Any) -> list[int]:
        parameters = genai.GeneratorParams(model)
        length = len(prompt) + count
        parameters.set_search_options(max_length=length, min_length=length, **options)
        generator = genai.Generator(model, parameters)
        generator.append_tokens(np.int32([prompt]))
        while not generator.is_done():
            generator.generate_next_token()
        return generator.get_sequence(0).tolist()[len(prompt) :]

    for prompt, tokens in zip(wanted["prompts"], wanted["greedy"], strict=True):
        until = min(tokens.index(0) if 0 in tokens else len(tokens), SURE[kind])
        assert generated(model, prompt, 24)[:until] == tokens[:until]
    beams = generated(model, wanted["prompts"][0], 12, num_beams=3)
    assert beams == generated(by_bodies, wanted["prompts"][0], 12, num_beams=3)
    if kind == "float16":
        assert beams == wanted["beams"]


@pytest.mark.parametrize(
    ("options", "grouped"), [({}, 1), ({"kv_cache": "float16"}, 1), ({"kv_cache": "uint8"}, 1), ({"target": "cuda"}, 0)]
)
def test_one_unsupported_attention(
    options: dict[str, Any], grouped: int, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The caches of all layers stay float32, and ONNX Runtime's operator extends those of the others, except on CUDA."""
    source, _, _ = folders("llama", place)
    checked: list[Any] = []

    def check(found: Any) -> None:
        checked.append(found)
        if len(checked) == 2:
            raise UnsupportedAttention("the second is not supported")

    monkeypatch.setattr(expose, "check_types", check)
    model, report = convert(source / "openvino_model.xml", form="genai", positions=64, **options)
    decoder = report.decoder
    operators = [node.op_type for node in model.graph.node]
    assert operators.count("GroupQueryAttention") == decoder.grouped == grouped
    assert "GroupQueryAttentionCompressed" not in operators
    assert decoder.cache == "float32" and decoder.own and needed_library(decoder) is None
    assert {value.type.tensor_type.elem_type for value in model.graph.input if "." in value.name} == {onnx.TensorProto.FLOAT}


def test_the_default_cache_type(place: Path) -> None:
    """float32, which any runtime supports, with 8-bit activations too, and for unsupported attention."""
    source, _, _ = folders("llama", place)
    how = {"form": "genai", "positions": 64}
    assert convert(source / "openvino_model.xml", **how).report.decoder.cache == "float32"
    assert convert(source / "openvino_model.xml", activations="int8", **how).report.decoder.cache == "float32"
    other, _, _ = folders("bloom", place)
    decoder = convert(other / "openvino_model.xml", kv_cache="uint8", **how).report.decoder
    assert decoder.cache == "float32" and any("the cache stays float32" in reason for reason in decoder.kept)
    assert decoder.own and needed_library(decoder) is None
    with pytest.raises(ValueError, match="kv_cache must be 'float32', 'float16' or 'uint8', not 'int4'"):
        convert(source / "openvino_model.xml", kv_cache="int4", **how)
    with pytest.raises(ValueError, match="kv_cache requires form='genai'"):
        convert(source / "openvino_model.xml", kv_cache="uint8")


def test_text_in_text_out(place: Path) -> None:
    source, target, _ = folders("llama", place)
    written, remarks = write_tokenizers(source, target, convert)
    assert len(written) == 2 and not remarks
    wanted = expected("llama")
    model = LanguageModel(target)
    assert model.encode(wanted["text"]) == wanted["ids"]
    pieces = list(model.write(wanted["text"], 24))
    assert "".join(pieces) == wanted["answer_text"] and model.generated == len(wanted["answer"])


def test_the_body_agrees_with_the_kernel(place: Path) -> None:
    """In a runtime without GroupQueryAttention."""
    _, target, _ = folders("llama", place)
    model = onnx.load(target / "model.onnx")
    evaluator = reference_evaluator(model)
    session = ort.InferenceSession(target / "model.onnx")
    ids = np.array([[5, 6, 7, 8]])
    feeds = {"input_ids": ids, "attention_mask": np.ones((1, 4), np.int64)}
    for value in session.get_inputs():
        if value.name not in feeds:
            feeds[value.name] = np.zeros((1, value.shape[1], 0, value.shape[3]), np.float32)
    for got, wanted in zip(evaluator.run(None, feeds), session.run(None, feeds), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-3, atol=1e-4)


def test_the_cache_is_explicit_without_operators_of_onnxruntime(place: Path) -> None:
    source, _, _ = folders("llama", place)
    target = place / "standard"
    write_genai(source, target, lambda *args, **more: convert(*args, contrib=False, **more))
    assert not any(node.domain for node in onnx.load(target / "model.onnx").graph.node)
    model = LanguageModel(target)
    model.ends = frozenset()
    wanted = expected("llama")
    assert list(model.generate(wanted["prompts"][0], 24)) == wanted["greedy"][0]


def test_a_cache_in_place_grows_without_losing_tokens(place: Path) -> None:
    source, _, _ = folders("llama", place)
    write_genai(source, place / "llama.all", convert, logits="all")
    session = onnx_specops.InferenceSession(place / "llama.all" / "model.onnx")
    ids = np.random.default_rng(0).integers(1, 320, (1, 100))
    whole = session.run(None, {"input_ids": ids, "attention_mask": np.ones((1, 100), np.int64)})[0]
    session.reset_state()
    for end in range(1, 101):
        feeds = {"input_ids": ids[:, end - 1 : end], "attention_mask": np.ones((1, end), np.int64)}
        (logits,) = session.run(None, feeds)
        np.testing.assert_allclose(logits[0, -1], whole[0, end - 1], rtol=1e-3, atol=1e-3)
    with pytest.raises(ValueError, match="the run has 2 rows, but the caches have 1"):
        session.run(None, {"input_ids": ids[:, :2].reshape(2, 1), "attention_mask": np.ones((2, 101), np.int64)})


def test_left_padding_is_rejected(place: Path) -> None:
    """GroupQueryAttention counts a row's tokens from its beginning, so an error is better than wrong tokens."""
    _, target, _ = folders("llama", place)
    options = ort.SessionOptions()
    options.log_severity_level = 4
    session = onnx_specops.InferenceSession(target / "model.onnx", options)
    with pytest.raises(Exception, match="out of range"):
        session.run(None, {"input_ids": np.array([[5, 6, 7]]), "attention_mask": np.array([[0, 1, 1]])})


# -- invalid folders and prompts
# ---------------------------------------------------------------------------------------------


def test_a_prompt_beyond_the_models_positions(place: Path) -> None:
    _, target, _ = folders("llama", place)
    model = LanguageModel(target)
    with pytest.raises(GenerationError, match="128 tokens, more than the 127 that"):
        next(model.generate([5] * 128, 1))
    assert len(list(LanguageModel(target).generate([5] * 120, 100))) <= 8


@pytest.mark.parametrize(
    ("name", "value"), [("vocab_size", None), ("eos_token_id", {}), ("bos_token_id", []), ("decoder", {"filename": []})]
)
def test_settings_without_effect(name: str, value: Any, place: Path, tmp_path: Path) -> None:
    _, target, _ = folders("llama", place)
    settings = json.loads((target / "genai_config.json").read_text())
    settings["model"][name] = value
    (tmp_path / "genai_config.json").write_text(json.dumps(settings))
    with pytest.raises(GenerationError, match="is not a valid model configuration: "):
        LanguageModel(tmp_path)


def test_a_token_outside_the_vocabulary(place: Path) -> None:
    _, target, _ = folders("llama", place)
    with pytest.raises(GenerationError, match="the token 320, but the vocabulary has 320 tokens"):
        next(LanguageModel(target).generate([5, 320], 1))


def test_a_folder_without_a_tokenizer(place: Path, tmp_path: Path) -> None:
    _, target, _ = folders("llama", place)
    for name in ("model.onnx", "genai_config.json"):
        (tmp_path / name).write_bytes((target / name).read_bytes())
    with pytest.raises(GenerationError, match="contains no tokenizer"):
        LanguageModel(tmp_path).encode("text")


def changed(source: Path, folder: Path, name: str, change: Callable[[Any], None]) -> Path:
    """Return a copy of a folder with a change to one of its configurations."""
    shutil.copytree(source, folder)
    content = json.loads((folder / name).read_text())
    change(content)
    (folder / name).write_text(json.dumps(content))
    return folder


def test_a_tokenizer_of_another_vocabulary(place: Path, tmp_path: Path) -> None:
    source, _, _ = folders("llama", place)
    other = changed(source, tmp_path / "other", "tokenizer.json", lambda file: file["added_tokens"][0].update(id=5000))
    with pytest.raises(ConversionError, match="the tokenizer is from another model"):
        write_genai(other, tmp_path / "out", convert)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("change", [{"vocab_size": 7}, {"vocab_size": None}, {"vocab_size": 7, "padded_vocab_size": 320}])
def test_a_configuration_of_another_vocabulary(place: Path, tmp_path: Path, change: dict[str, Any]) -> None:
    source, _, _ = folders("llama", place)
    other = changed(source, tmp_path / "other", "config.json", lambda file: file.update(change))
    if change != {"vocab_size": 7}:
        write_genai(other, tmp_path / "out", convert)
        return
    with pytest.raises(ConversionError, match="its vocab_size is 7, but the model has logits of 320 tokens"):
        write_genai(other, tmp_path / "out", convert)
    assert not (tmp_path / "out").exists()


def test_a_folder_of_another_kind(tmp_path: Path) -> None:
    with pytest.raises(ConversionError, match=r"contains no openvino_model\.xml"):
        write_genai(tmp_path, tmp_path / "out", convert)
    (tmp_path / "model_index.json").write_text("{}")
    with pytest.raises(ConversionError, match="a pipeline of several models"):
        write_genai(tmp_path, tmp_path / "out", convert)


@pytest.mark.parametrize(
    ("positions", "grouped", "said"),
    [(10**6, 2, "a table of 1,000,000 positions would be too large"), (10**9, 0, "1,000,000,000 positions are more than")],
)
def test_more_positions_than_are_evaluated(positions: int, grouped: int, said: str, place: Path) -> None:
    source, _, _ = folders("llama", place)
    model, report = convert(source / "openvino_model.xml", form="genai", positions=positions)
    assert report.decoder is not None and (report.decoder.grouped, report.decoder.rotated) == (grouped, 0)
    assert any(said in reason for reason in report.decoder.kept) and model.ByteSize() < 2**20
    with pytest.raises(ValueError, match="positions must be 1 or more, not 0"):
        convert(source / "openvino_model.xml", form="genai", positions=0)


def test_a_model_without_a_cache() -> None:
    with pytest.raises(ConversionError, match="not a decoder with a cache"):
        convert(Path(__file__).parents[2] / "models/matmul/model.xml", form="genai")
