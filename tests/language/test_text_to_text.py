"""Encoder-decoders of texts agree with transformers on OpenVINO, as tokens and as text."""

from __future__ import annotations

import json
import shutil
import zipfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from converters.errors import ConversionError
from converters.folders.encoder_decoder import write_encoder_decoder
from converters.folders.tokenizers import write_tokenizers
from converters.openvino import convert
from onnx_specops.generation import Beams, EncoderDecoder, GenerationError, Sampling, open_model
from onnx_specops.generation.beams import best_texts
from onnx_specops.generation.constraints import Constraints
from tests.converters.cli.specops import as_json, specops
from tests.native import needs_pcre2

ARCHIVES = Path(__file__).parent / "text2text"
NAMES = sorted(path.stem for path in ARCHIVES.glob("*.zip"))


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("text2text")


@cache
def folders(name: str, place: Path) -> tuple[Path, Path]:
    """Return the folder of a model, and its conversion."""
    source, target = place / name, place / f"{name}.onnx"
    with zipfile.ZipFile(ARCHIVES / f"{name}.zip") as file:
        file.extractall(source)
    write_encoder_decoder(source, target, convert)
    write_tokenizers(source, target, convert)
    return source, target


def expected(source: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((source / "expected.json").read_text())
    return found


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kernels", [pytest.param("native", marks=needs_pcre2), "python"])
def test_results_equal_openvino(name: str, kernels: Any, place: Path) -> None:
    source, target = folders(name, place)
    model = open_model(target, kernels=kernels)
    assert isinstance(model, EncoderDecoder)
    for given in expected(source):
        assert list(model.generate(model.encode(given["text"]), 40)) == given["ids"]
        assert "".join(model.write(given["text"], 40)) == given["answer"]
        assert model.generated == len(given["ids"])


def test_a_decoder_without_a_cache_gets_all_tokens(place: Path, tmp_path: Path) -> None:
    """Its variables are inputs that are never set, so each run computes the values that other models keep."""
    source, target = folders("bart_text", place)
    shutil.copytree(target, tmp_path / "out")
    path = tmp_path / "out" / "openvino_decoder_model.onnx"
    model = onnx.load(path)
    del model.metadata_props[:]
    known = {"input_ids", "encoder_hidden_states", "encoder_attention_mask", "beam_idx", "decoder_input_ids"}
    carried = [value for value in model.graph.input if value.name not in known]
    for value in carried:
        model.graph.input.remove(value)
    onnx.save(model, path)
    (given, *_) = expected(source)
    assert list(EncoderDecoder(tmp_path / "out").generate(EncoderDecoder(target).encode(given["text"]), 40)) == given["ids"]


def test_another_first_token(place: Path) -> None:
    _, target = folders("bart_text", place)
    model = EncoderDecoder(target, forced_bos_token_id=17)
    assert next(model.generate([3, 4, 5], 1)) == 17
    for token in (320, -1):
        with pytest.raises(GenerationError, match=f"first token of a text is {token}, but the vocabulary has 320 tokens"):
            EncoderDecoder(target, forced_bos_token_id=token)


def test_generation_from_the_original_and_converted_folder(place: Path, tmp_path: Path) -> None:
    source, _ = folders("t5_text", place)
    target = tmp_path / "out"
    assert specops("convert", source, "-o", target).exit_code == 0
    (given, *_) = expected(source)
    for folder in (source, target):
        document = as_json(specops("generate", folder, given["text"], "--tokens", 40, "--json"))
        assert document["ids"] == given["ids"] and document["text"] == given["answer"]
    result = specops("generate", target, given["text"], "--tokens", 40)
    assert result.exit_code == 0 and result.stdout == f"{given['answer']}\n" and "40 tokens" in result.stderr


# -- inconsistent folders ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("openvino_decoder_model.onnx", "contains no openvino_decoder_model.onnx"),
        ("config.json", "contains no config.json"),
        ("openvino_tokenizer.onnx", "contains no tokenizer"),
    ],
)
def test_missing_files(name: str, said: str, place: Path, tmp_path: Path) -> None:
    _, target = folders("t5_text", place)
    shutil.copytree(target, tmp_path / "out")
    (tmp_path / "out" / name).unlink()
    (tmp_path / "out" / "tokenizer.json").unlink()
    with pytest.raises(GenerationError, match=said):
        open_model(tmp_path / "out").encode("text")


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ("{", "cannot be read"),
        ("[]", "contains list instead of a JSON object"),
        ('{"eos_token_id": "one"}', "does not specify the first and last tokens"),
        ("{}", "does not specify the first and last tokens"),
    ],
)
def test_invalid_settings(settings: str, said: str, place: Path, tmp_path: Path) -> None:
    _, target = folders("t5_text", place)
    shutil.copytree(target, tmp_path / "out")
    for name in ("config.json", "generation_config.json"):
        (tmp_path / "out" / name).write_text(settings)
    with pytest.raises(GenerationError, match=said):
        open_model(tmp_path / "out")


def test_an_encoder_of_another_model(place: Path, tmp_path: Path) -> None:
    _, target = folders("t5_text", place)
    shutil.copytree(target, tmp_path / "out")
    path = tmp_path / "out" / "openvino_encoder_model.onnx"
    model = onnx.load(path)
    model.graph.input.append(onnx.helper.make_tensor_value_info("input_features", onnx.TensorProto.FLOAT, [1, 80, 3000]))
    onnx.save(model, path)
    with pytest.raises(GenerationError, match="contains a speech recognition model"):
        open_model(tmp_path / "out")


def test_an_encoder_of_images(place: Path, tmp_path: Path) -> None:
    """The settings of Pix2Struct's tokens are in another place, but the images are the reason that it does not run."""
    _, target = folders("t5_text", place)
    shutil.copytree(target, tmp_path / "out")
    path = tmp_path / "out" / "openvino_encoder_model.onnx"
    model = onnx.load(path)
    model.graph.input.append(onnx.helper.make_tensor_value_info("flattened_patches", onnx.TensorProto.FLOAT, [1, 4, 770]))
    onnx.save(model, path)
    (tmp_path / "out" / "config.json").write_text('{"model_type": "pix2struct", "text_config": {"vocab_size": 320}}')
    with pytest.raises(GenerationError, match="has inputs other than tokens and their mask: flattened_patches"):
        open_model(tmp_path / "out")


def test_invalid_prompts(place: Path) -> None:
    _, target = folders("bart_text", place)
    model = EncoderDecoder(target)
    for prompt, said in (([], "no tokens"), ([320], "the vocabulary has 320 tokens"), ([5] * 65, "more than the 64")):
        with pytest.raises(GenerationError, match=said):
            next(model.generate(prompt, 1))


def test_a_folder_without_its_decoder(tmp_path: Path) -> None:
    (tmp_path / "openvino_encoder_model.xml").write_text("<net/>")
    with pytest.raises(ConversionError, match=r"contains no openvino_decoder_model\.xml"):
        write_encoder_decoder(tmp_path, tmp_path / "out", convert)


@pytest.mark.parametrize("kind", ["llama", "lfm2", "gpt_neox", "t5", "unheard_of", None])
def test_the_configuration_of_a_decoder(kind: str | None, place: Path, tmp_path: Path) -> None:
    """Its start token, if any, is not that of the encoder-decoder, so other texts would result."""
    source, _ = folders("t5_text", place)
    for path in source.iterdir():
        if path.name != "config.json":
            (tmp_path / path.name).symlink_to(path)
    config = json.loads((source / "config.json").read_text())
    (tmp_path / "config.json").write_text(json.dumps(config | {"model_type": kind}))
    result = specops("generate", tmp_path, "text", "--tokens", 1)
    if kind in ("llama", "lfm2", "gpt_neox"):
        told = " ".join(result.stderr.split())
        assert result.exit_code and f"its model_type is '{kind}', a decoder of text, but the folder contains an en" in told
    else:
        assert not result.exit_code, result.output


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            {"model_type": "llama", "is_encoder_decoder": None, "decoder_start_token_id": None, "bos_token_id": 1},
            "is not that of an encoder-decoder: its model_type is 'llama', and it states no decoder_start_token_id",
        ),
        ({"vocab_size": 321}, "has logits of 320 tokens, but the configuration states 321: use the configuration"),
        ({"num_decoder_layers": 3}, "it describes 3 layers, but the model has 2 key-value caches; use the config.json"),
        ({"decoder_vocab_size": 320, "vocab_size": 400}, None),  # the vocabulary of prompts can be another one
        ({"is_encoder_decoder": None}, None),
        ({"num_decoder_layers": None, "num_layers": None}, None),
    ],
)
def test_the_configuration_of_another_model(change: dict[str, Any], said: str | None, place: Path, tmp_path: Path) -> None:
    _, target = folders("t5_text", place)
    shutil.copytree(target, tmp_path / "out")
    for name in ("config.json", "generation_config.json"):
        config = json.loads((tmp_path / "out" / name).read_text())
        changed = config | (change if name == "config.json" else {key: change[key] for key in change if key in config})
        (tmp_path / "out" / name).write_text(json.dumps({key: one for key, one in changed.items() if one is not None}))
    if said is None:
        assert isinstance(open_model(tmp_path / "out"), EncoderDecoder)
        return
    with pytest.raises(GenerationError, match=said):
        open_model(tmp_path / "out")


# -- beam search ------------------------------------------------------------------------------------------------------------

_ENDS = [12, 53, 107, 108, 111, 158, 194, 222, 232, 237, 266, 274]


@pytest.mark.parametrize(
    ("beams", "settings", "ids"),
    [
        (3, {}, [270, 250, 37, 37, 37]),
        (3, {"length_penalty": 2.0}, [270, 250, 37, 37, 37, 250, 37]),
        (3, {"length_penalty": -2.0}, [270]),
        (3, {"length_penalty": 2.0, "early_stopping": True}, [270, 250, 37, 37, 37]),
        (3, {"length_penalty": 2.0, "early_stopping": "never"}, [270, 250, 37, 37, 133, 37, 37, 250, 39, 285]),
        (
            4,
            {"repetition_penalty": 1.5, "no_repeat_ngram_size": 2, "forced_eos_token_id": 11},
            [270, 250, 37, 37, 133, 269],
        ),
        (3, {"forced_bos_token_id": 9, "min_length": 6}, [9, 44, 44, 285, 39, 39, 250, 269]),
        (1, {}, [44, 44, 60]),
    ],
)
def test_beams_equal_transformers(beams: int, settings: dict[str, Any], ids: list[int], place: Path, tmp_path: Path) -> None:
    """The tokens are those of transformers with OpenVINO, for at most ten of them."""
    _, target = folders("bart_text", place)
    shutil.copytree(target, tmp_path, dirs_exist_ok=True)
    start = json.loads((target / "config.json").read_text())["decoder_start_token_id"]
    stated = {"decoder_start_token_id": start, "eos_token_id": _ENDS, **settings}
    (tmp_path / "generation_config.json").write_text(json.dumps(stated))
    model = EncoderDecoder(tmp_path)
    assert list(model.generate([13, 96, 121], 10, beams=beams)) == model.given == ids
    assert list(model.generate([13, 96, 121], 10, beams=Beams.of(settings, beams))) == ids


def test_a_beam_search_ends_at_the_maximum() -> None:
    """Of the texts with two tokens, the most likely one is not that of greedy search."""
    after = {0: [0.5, 0.4, 0.1], 1: [0.4, 0.3, 0.3], 2: [0.9, 0.05, 0.05]}  # of three tokens, after each of them
    calls = []

    def scores_of(texts: Any, rows: Any) -> np.ndarray:
        calls.append((texts, rows))
        return np.log(np.array([after[text[-1]] for text in texts], np.float32))

    def best_text(beams: Beams, begin: list[int], most: int) -> list[int]:
        return list(best_texts(beams, begin, most, [], scores_of)[0].tokens)

    assert best_text(Beams(number=1), [2], 1) == [0]
    assert calls == [([[2]], [0])]
    after[0], after[2] = [0.34, 0.33, 0.33], [0.55, 0.45, 0.0]
    after[1] = [0.98, 0.01, 0.01]
    with np.errstate(divide="ignore"):
        assert best_text(Beams(number=1), [2], 2) == [0, 0]
        assert best_text(Beams(number=2), [2], 2) == [1, 0]
    assert calls[-1] == ([[2, 0], [2, 1]], [0, 0])  # the second text of the first run is the same as the first


@pytest.mark.parametrize(
    "settings", [{"length_penalty": "x"}, {"length_penalty": float("nan")}, {"early_stopping": "x"}, {"early_stopping": []}]
)
def test_invalid_settings_of_beams(settings: dict[str, Any], place: Path, tmp_path: Path) -> None:
    _, target = folders("bart_text", place)
    shutil.copytree(target, tmp_path, dirs_exist_ok=True)
    (tmp_path / "generation_config.json").write_text(json.dumps(settings))
    with pytest.raises(GenerationError, match=r"generation_config\.json has an invalid setting"):
        list(EncoderDecoder(tmp_path).generate([5], 4, beams=2))


def test_beams_exclude_sampling(place: Path) -> None:
    _, target = folders("bart_text", place)
    with pytest.raises(GenerationError, match="beam search does not support sampling"):
        list(EncoderDecoder(target).generate([5], 4, Sampling(do_sample=True), beams=2))
    with pytest.raises(GenerationError, match="number of beams must be at least 1, not 0"):
        list(EncoderDecoder(target).generate([5], 4, beams=0))


def test_beams_on_the_command_line(place: Path) -> None:
    _, target = folders("bart_text", place)
    model = EncoderDecoder(target)
    text = "".join(model.write("Once upon a time", 12, beams=3))
    document = as_json(specops("generate", target, "Once upon a time", "--tokens", 12, "--beams", 3, "--json"))
    assert document["text"] == text and document["ids"] == model.given
    template = target / "chat_template.jinja"
    template.write_text("{% for one in messages %}{{ one.content }}{% endfor %}")
    try:
        asked = [{"role": "user", "content": "Once upon a time"}]
        answer = "".join(EncoderDecoder(target).chat(asked, 12, beams=3))
        document = as_json(
            specops("generate", target, asked[0]["content"], "--tokens", 12, "--beams", 3, "--chat", "--json")
        )
        assert document["text"] == answer
    finally:
        template.unlink()
    result = specops("generate", target, "Once", "--beams", 3, "--top-k", 4)
    assert result.exit_code == 2 and "cannot be combined with sampling" in " ".join(result.stderr.split())


# -- allowed tokens ---------------------------------------------------------------------------------------------------------


def banned(constraints: Constraints, ids: list[int]) -> list[int]:
    """Return the forbidden tokens by the rules of transformers, which the results above follow, too."""
    scores = constraints.applied(np.zeros(10, np.float32), ids)
    return np.flatnonzero(np.isneginf(scores)).tolist()


def test_constraints() -> None:
    ends = [9]
    of = Constraints.of
    assert banned(of({}, ends), [0]) == []
    assert banned(of({"no_repeat_ngram_size": 2}, ends), [1, 2, 3, 1]) == [2]
    assert banned(of({"no_repeat_ngram_size": 1}, ends), [1, 2]) == [1, 2]
    assert banned(of({"no_repeat_ngram_size": 5}, ends), [1, 2]) == []
    assert banned(of({"bad_words_ids": [[4], [2, 5], [9], [1, 2, 6]]}, ends), [1, 2]) == [4, 5]
    assert banned(of({"bad_words_ids": [[4], [2, 5], [9], [1, 2, 6]]}, ends), [0, 1, 2]) == [4, 5, 6]
    assert banned(of({"bad_words_ids": [[1, 2, 6]]}, ends), [2]) == []
    # the decoder's start token is not a new token; transformers ignores min_length beside min_new_tokens
    for rules in ({"min_length": 3}, {"min_new_tokens": 2}, {"min_new_tokens": 2, "min_length": 9}):
        assert banned(of(rules, ends), [0, 1]) == [9]
        assert banned(of(rules, ends), [0, 1, 2]) == []
    assert banned(of({"min_new_tokens": 0, "min_length": 9}, ends), [0]) == []
    assert banned(of({"suppress_tokens": [3, 30, -1]}, ends), [0]) == [3]
    assert banned(of({"begin_suppress_tokens": [3]}, ends), [0]) == [3]
    of_prompt = of({"encoder_no_repeat_ngram_size": 2}, ends)
    assert np.flatnonzero(np.isneginf(of_prompt.applied(np.zeros(10), [0, 1], [1, 2, 1, 3, 9, 1]))).tolist() == [2, 3]
    assert np.flatnonzero(np.isneginf(of_prompt.applied(np.zeros(10), [1, 2, 0], [1, 2, 1]))).tolist() == []
    forced = of({"forced_bos_token_id": 4, "begin_suppress_tokens": [3]}, ends)
    assert banned(forced, [0]) == [k for k in range(10) if k != 4] and banned(forced, [0, 4]) == [3]


def test_constraints_of_a_single_decoder() -> None:
    """The prompt is part of the text."""

    def banned_after(settings: dict[str, Any], ids: list[int], before: int) -> list[int]:
        scores = Constraints.of(settings, [9]).applied(np.zeros(10, np.float32), ids, ids[:before], before)
        return np.flatnonzero(np.isneginf(scores)).tolist()

    for rule, least in (("min_length", 5), ("min_new_tokens", 2)):
        assert banned_after({rule: least}, [1, 2, 3, 4], 3) == [9] and banned_after({rule: least}, [1, 2, 3, 4, 5], 3) == []
    begin = {"begin_suppress_tokens": [3]}
    assert banned_after(begin, [1, 2], 2) == [3] and banned_after(begin, [1, 2, 4], 2) == []
    forced = {**begin, "forced_bos_token_id": 4}  # only after a single token
    assert banned_after(forced, [1, 2], 2) == [3] and banned_after(forced, [1, 4], 1) == [3]
    assert banned_after(forced, [1], 1) == [k for k in range(10) if k != 4]


def test_repetition_penalty() -> None:
    scores = Constraints(repetition_penalty=2.0).applied(np.array([1, -1, 3, -3], np.float32), [2, 3, 2])
    np.testing.assert_array_equal(scores, np.array([1, -1, 1.5, -6], np.float32))


def test_penalty_of_tokens_outside_the_prompt() -> None:
    """transformers raises the logits of the prompt's tokens, before it reduces those of repeated tokens."""
    constraints = Constraints.of({"encoder_repetition_penalty": 2.0, "repetition_penalty": 4.0}, [9])
    scores = constraints.applied(np.array([1, -1, 3, -3], np.float32), [3], [2, 3, 2])
    np.testing.assert_array_equal(scores, np.array([1, -1, 6, -6], np.float32))


def test_the_last_token_may_be_fixed(place: Path, tmp_path: Path) -> None:
    """transformers replaces the last token of a text that reaches the limit; an end token is not returned."""
    _, target = folders("bart_text", place)
    ids = list(EncoderDecoder(target).generate([5, 6, 7], 6))
    assert len(ids) == 6
    shutil.copytree(target, tmp_path, dirs_exist_ok=True)
    path = tmp_path / "generation_config.json"
    settings = json.loads(path.read_text())
    for last, found in ((settings["eos_token_id"], ids[:-1]), ([11, 10], [*ids[:-1], 10])):
        path.write_text(json.dumps({**settings, "forced_eos_token_id": last}))
        assert list(EncoderDecoder(tmp_path).generate([5, 6, 7], 6)) == found
        assert list(EncoderDecoder(tmp_path).generate([5, 6, 7], 7))[:5] == ids[:5]
