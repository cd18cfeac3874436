"""Beam search and settings of generation_config.json: the tokens that transformers generates with OpenVINO."""

from __future__ import annotations

import json
import shutil
import warnings
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from converters.folders.encoder_decoder import write_encoder_decoder
from converters.folders.stateful import write_language_model
from converters.folders.tokenizers import write_tokenizers
from onnx_specops.generation import Beams, GenerationError, LanguageModel, Sampling, SettingWarning, SpeechModel, open_model
from onnx_specops.generation.constraints import Constraints
from onnx_specops.generation.settings import not_applied
from tests.converters.cli.specops import as_json, specops
from tests.folders import transcripts
from tests.language import record_searches as recorded
from tests.language.test_speech import convert
from tests.native import needs_pcre2

ROWS = json.loads(recorded.SEARCHES.read_text())
FORMS = ("genai", "beam_idx")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("searches")


@cache
def folder(name: str, form: str, place: Path) -> Path:
    """Return a converted folder: in onnxruntime-genai's form, or with the inputs and variables of the IR."""
    source, target = place / name, place / f"{name}.{form}"
    if not source.is_dir():
        shutil.unpack_archive(recorded.archive(name), source)
    if name in recorded.PAIRS or (name == recorded.SPEECH and form == "beam_idx"):
        write_encoder_decoder(source, target, convert)
    elif name == recorded.SPEECH:
        write_language_model(source, target, convert)
    elif form == "beam_idx":
        target.mkdir()
        convert(source / "openvino_model.xml", target / "openvino_model.onnx")
        for path in (source / "config.json", source / "tokenizer.json"):
            shutil.copy(path, target)
    else:
        write_language_model(source, target, convert)
    write_tokenizers(source, target, convert)
    return target


def with_settings(folder: Path, target: Path, settings: dict[str, Any]) -> Path:
    """Copy a folder, with other settings in generation_config.json."""
    shutil.copytree(folder, target)
    path = target / "generation_config.json"
    stated = json.loads(path.read_text()) if path.is_file() else {}
    path.write_text(json.dumps({**stated, **settings}))
    config = target / "genai_config.json"
    if "eos_token_id" in settings and config.is_file():
        document = json.loads(config.read_text())
        document["model"]["eos_token_id"] = settings["eos_token_id"]
        config.write_text(json.dumps(document))
    return target


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", recorded.MODELS)
@pytest.mark.filterwarnings("ignore::onnx_specops.generation.SettingWarning")
def test_tokens_equal_transformers(name: str, form: str, place: Path, tmp_path: Path) -> None:
    rows = [row for row in ROWS if row["model"] == name]
    assert [row["settings"] for row in rows] == recorded.SETTINGS
    compare(rows, folder(name, form, place), tmp_path)


@pytest.mark.parametrize(
    ("name", "form"),
    [
        *((name, "beam_idx") for name in recorded.HYBRIDS),
        *((name, "genai") for name in ("lfm2_moe", "granite_hybrid", "qwen3_5")),
    ],
)
@pytest.mark.filterwarnings("ignore::onnx_specops.generation.SettingWarning")
def test_states_of_hybrids(name: str, form: str, place: Path, tmp_path: Path) -> None:
    rows = [row for row in ROWS if row["model"] == name]
    assert [row["settings"] for row in rows] == recorded.SETTINGS_OF_HYBRIDS
    compare(rows, folder(name, form, place), tmp_path)


def compare(rows: list[dict[str, Any]], source: Path, place: Path) -> None:
    for number, row in enumerate(rows):
        settings = {"eos_token_id": 0, **row["settings"]}
        negative = settings.pop("negative_prompt_ids", ())
        model = LanguageModel(with_settings(source, place / str(number), settings))
        beams = settings.get("num_beams")
        found = list(model.generate(recorded.PROMPT, recorded.COUNT, Sampling(negative_prompt=negative), beams=beams))
        expected = [cut(text, model.ends) for text in row["tokens"]]
        assert found == model.given == expected[0], settings
        if beams is None:
            assert model.hypotheses == []
            continue
        assert [list(text.tokens) for text in model.hypotheses] == expected
        np.testing.assert_allclose([text.score for text in model.hypotheses], row["scores"], rtol=1e-3, atol=1e-3)
        again = list(model.generate(recorded.PROMPT, 4))  # the states of the beams are gone
        assert again == list(LanguageModel(model.folder).generate(recorded.PROMPT, 4))


def cut(text: list[int], ends: frozenset[int]) -> list[int]:
    return text[: next((place for place, token in enumerate(text) if token in ends), len(text))]


@needs_pcre2
@pytest.mark.parametrize("name", recorded.PAIRS)
@pytest.mark.filterwarnings("ignore::onnx_specops.generation.SettingWarning")
def test_answers_equal_transformers(name: str, place: Path, tmp_path: Path) -> None:
    rows = [row for row in ROWS if row["model"] == name]
    assert [row["settings"] for row in rows] == recorded.SETTINGS_OF_PAIRS
    for number, row in enumerate(rows):
        model = open_model(with_settings(folder(name, "beam_idx", place), tmp_path / str(number), row["settings"]))
        found = list(model.generate(recorded.PROMPT, recorded.COUNT, beams=row["settings"]["num_beams"]))
        expected = [cut(text, frozenset(model.constraints.ends)) for text in row["tokens"]]
        assert found == expected[0] and [list(text.tokens) for text in model.hypotheses] == expected, row["settings"]
        np.testing.assert_allclose([text.score for text in model.hypotheses], row["scores"], rtol=1e-3, atol=1e-3)


@needs_pcre2
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.filterwarnings("ignore::onnx_specops.generation.SettingWarning")
def test_recordings_equal_transformers(form: str, place: Path, tmp_path: Path) -> None:
    rows = [row for row in ROWS if row["model"] == recorded.SPEECH]
    assert [row["settings"] for row in rows] == recorded.SETTINGS_OF_SPEECH
    source = folder(recorded.SPEECH, form, place)
    stated = json.loads((source / "generation_config.json").read_text())
    for number, row in enumerate(rows):
        settings = recorded.of_speech(row["settings"], stated)
        model = open_model(with_settings(source, tmp_path / str(number), settings))
        assert isinstance(model, SpeechModel)
        beams = row["settings"].get("num_beams")
        audio = transcripts.recording(recorded.SECONDS)
        found = list(model.generate([], recorded.COUNT_OF_SPEECH, audio=audio, beams=beams))
        assert [found] == row["tokens"], row["settings"]
        assert bool(model.hypotheses) == (beams is not None)


@needs_pcre2
def test_requests_precede_the_settings_of_recordings(place: Path, tmp_path: Path) -> None:
    settings = {"language": "german", "task": "translate", "return_timestamps": True}
    source = folder(recorded.SPEECH, "genai", place)
    plain, stated = (open_model(path) for path in (source, with_settings(source, tmp_path / "out", settings)))
    assert isinstance(plain, SpeechModel) and isinstance(stated, SpeechModel)
    audio = transcripts.recording(1.0)
    for asked in (
        {"language": "fr", "task": "transcribe", "timestamps": False},
        {"language": "French", "task": "translate", "timestamps": True},
    ):
        found: list[Any] = [(list(one.generate([], 8, audio=audio, **asked)), one.language) for one in (plain, stated)]
        assert found[0] == found[1] and found[0][1] == "fr"
    list(stated.generate([], 8, audio=audio))
    assert stated.language == "de" and stated.segments
    text = "".join(stated.write("", 8, audio=audio, beams=3))
    assert stated.decode(stated.given) == text


@needs_pcre2
@pytest.mark.parametrize("form", FORMS)
def test_beams_of_long_recordings(form: str, place: Path) -> None:
    """Each window has its own search, with the times of its segments."""
    model = open_model(folder(recorded.SPEECH, form, place))
    assert isinstance(model, SpeechModel)
    audio = transcripts.recording(47.0)
    greedy = list(model.generate([], 12, audio=audio))
    segments = model.segments
    assert list(model.generate([], 12, audio=audio, beams=1)) == greedy and model.segments == segments
    found = list(model.generate([], 12, audio=audio, beams=3))
    assert [token for part in model.segments for token in part.tokens] == found == model.given
    assert model.segments[0].start < 30 <= model.segments[-1].start


# -- groups of beams --------------------------------------------------------------------------------------------------------


def test_groups_from_the_configuration(place: Path, tmp_path: Path) -> None:
    """With a number of beams, num_beam_groups and diversity_penalty apply, unless the caller chooses others."""
    source = folder("llama", "genai", place)
    settings = {"num_beam_groups": 2, "diversity_penalty": 1.5}
    with pytest.warns(SettingWarning, match="diversity_penalty, num_beam_groups"):
        stated = LanguageModel(with_settings(source, tmp_path / "out", settings))
    assert stated.beams(4) == Beams(number=4, groups=2, diversity_penalty=1.5)
    assert stated.beams(6, 3, 0.5) == Beams(number=6, groups=3, diversity_penalty=0.5)
    assert stated.beams(1) == Beams(number=1, diversity_penalty=1.5)
    model = LanguageModel(source)
    expected = list(model.generate(recorded.PROMPT, 6, beams=Beams(number=4, groups=2, diversity_penalty=1.5)))
    hypotheses = model.hypotheses
    assert list(stated.generate(recorded.PROMPT, 6, beams=4)) == expected and stated.hypotheses == hypotheses
    with pytest.raises(GenerationError, match=r"generation_config\.json has an invalid setting: the number of beams must"):
        list(stated.generate(recorded.PROMPT, 6, beams=3))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"number": 4, "groups": 3}, "multiple of that of the groups: 4, 3"),
        ({"number": 4, "groups": 0}, "multiple of that of the groups: 4, 0"),
        ({"number": 4, "groups": 2}, "diversity_penalty must be finite and above 0, not 0.0"),
        ({"number": 4, "groups": 2, "diversity_penalty": -1.0}, "diversity_penalty must be finite and above 0"),
        ({"number": 4, "groups": 2, "diversity_penalty": float("nan")}, "diversity_penalty must be finite and above 0"),
        ({"number": 4, "groups": 2, "diversity_penalty": float("inf")}, "diversity_penalty must be finite and above 0"),
    ],
)
def test_invalid_groups(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Beams(**settings)


@pytest.mark.parametrize("form", FORMS)
def test_stop_strings_of_groups(form: str, place: Path) -> None:
    model = LanguageModel(folder("llama", form, place))
    beams = Beams(number=4, groups=2, diversity_penalty=2.0)
    text = "".join(model.write("Once upon a time", 12, beams=beams))
    stop = text[4:7]
    assert stop not in "".join(model.write("Once upon a time", 12, stop=[stop], beams=beams))
    assert model.hypotheses and all(stop not in model.decode(one.tokens[:-1]) for one in model.hypotheses)
    assert list(model.generate(recorded.PROMPT, 0, beams=beams)) == [] and model.hypotheses == []


def test_groups_of_long_recordings(place: Path) -> None:
    for form in FORMS:
        model = open_model(folder(recorded.SPEECH, form, place))
        assert isinstance(model, SpeechModel)
        audio = transcripts.recording(1.0)
        best = list(model.generate([], 6, audio=audio, beams=Beams(number=4, groups=4, diversity_penalty=9.0)))
        assert [list(one.tokens) for one in model.hypotheses].count(best) == 1 and len(model.hypotheses) == 4


# -- guidance ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
def test_guidance_of_a_conversation(form: str, place: Path) -> None:
    """Both texts have separate states, and the next turn continues those of the generated text."""
    source = folder("llama", form, place)
    guided = Sampling(guidance_scale=1.7, negative_prompt=(9, 8, 7))
    model, plain = LanguageModel(source), LanguageModel(source)
    answer = list(model.generate(recorded.PROMPT, 5, guided))
    assert answer != list(plain.generate(recorded.PROMPT, 5))
    longer = [*recorded.PROMPT, *answer, 7]
    assert list(model.generate(longer, 5)) == list(LanguageModel(source).generate(longer, 5))
    assert list(model.generate(longer, 5, guided)) == list(LanguageModel(source).generate(longer, 5, guided))
    for scale in (1, 1.0):  # no effect, whatever the negative prompt
        other = Sampling(guidance_scale=scale, negative_prompt=(4,))
        assert list(model.generate(longer, 5, other)) == list(plain.generate(longer, 5))


def test_guidance_replaces_that_of_the_configuration(place: Path, tmp_path: Path) -> None:
    source = folder("llama", "genai", place)
    stated = LanguageModel(with_settings(source, tmp_path / "out", {"guidance_scale": 1.7}))
    model = LanguageModel(source)
    for asked, expected in ((None, 1.7), (0.5, 0.5), (1.0, 1.0)):
        found = list(stated.generate(recorded.PROMPT, 6, Sampling(guidance_scale=asked)))
        assert found == list(model.generate(recorded.PROMPT, 6, Sampling(guidance_scale=expected)))


def test_positions_of_the_negative_prompt(place: Path) -> None:
    model = LanguageModel(folder("llama", "genai", place))
    long = (5,) * (model.positions - 3)
    assert len(list(model.generate([7], 9, Sampling(guidance_scale=2.0, negative_prompt=long)))) <= 3
    with pytest.raises(GenerationError, match=r"the prompt has \d+ tokens, more than"):
        list(model.generate([7], 9, Sampling(guidance_scale=2.0, negative_prompt=(*long, 5, 5, 5))))
    with pytest.raises(GenerationError, match="the prompt has the token -4"):
        list(model.generate([7], 9, Sampling(guidance_scale=2.0, negative_prompt=(-4,))))


@pytest.mark.parametrize("scale", ["x", [], {}, float("nan"), float("inf")])
def test_an_invalid_guidance_scale(scale: Any, place: Path, tmp_path: Path) -> None:
    target = with_settings(folder("llama", "genai", place), tmp_path / "out", {"guidance_scale": scale})
    with pytest.raises(GenerationError, match=r"generation_config\.json has an invalid setting"):
        LanguageModel(target)
    if isinstance(scale, float):
        with pytest.raises(ValueError, match="guidance_scale must be finite"):
            Sampling(guidance_scale=scale)


def test_models_without_guidance(place: Path) -> None:
    model = open_model(folder(recorded.SPEECH, "genai", place))
    for sampling in (Sampling(guidance_scale=2.0), Sampling(negative_prompt=(4,))):
        with pytest.raises(GenerationError, match="a model that does not support guidance"):
            list(model.generate([], 2, sampling, audio=transcripts.recording(1.0)))  # type: ignore[call-arg]
    assert (
        not_applied({"guidance_scale": 2.0}) == ["guidance_scale"] and not_applied({"guidance_scale": 2}, guides=True) == []
    )


@needs_pcre2
def test_the_command_with_groups_and_guidance(place: Path) -> None:
    target = folder("llama", "genai", place)
    model = LanguageModel(target)
    beams, text = Beams(number=4, groups=2, diversity_penalty=1.5), "Once upon a time"
    sampling = Sampling(guidance_scale=1.7, negative_prompt=tuple(model.encode("Never")))
    asked = ["generate", target, text, "--tokens", 6, "--json"]
    of_beams = ["--beams", 4, "--beam-groups", 2, "--diversity-penalty", 1.5]
    of_guidance = ["--guidance-scale", 1.7, "--negative-prompt", "Never"]
    document = as_json(specops(*asked, *of_beams))
    assert document["text"] == "".join(model.write(text, 6, beams=beams)) and len(document["hypotheses"]) == 4
    document = as_json(specops(*asked, *of_guidance))
    assert document["text"] == "".join(model.write(text, 6, sampling))
    document = as_json(specops(*asked, *of_beams, *of_guidance))
    assert document["text"] == "".join(model.write(text, 6, sampling, beams=beams))
    result = specops(*asked[:-1], *of_beams[2:])
    assert result.exit_code == 2 and "--beam-groups" in result.stderr and "it requires --beams" in result.stderr
    result = specops(*asked[:-1], "--beams", 3, *of_beams[2:])
    assert result.exit_code == 2 and "multiple of that of the groups: 3, 2" in " ".join(result.stderr.split())


def test_one_beam_is_greedy(place: Path) -> None:
    model = LanguageModel(folder("llama", "genai", place))
    greedy = list(model.generate(recorded.PROMPT, 8))
    for beams in (1, Beams(number=1, length_penalty=3.0)):
        assert list(model.generate(recorded.PROMPT, 8, beams=beams)) == greedy
    assert list(model.generate(recorded.PROMPT, 8, Sampling(do_sample=True, seed=3), beams=1))


def test_beams_at_the_end_of_the_positions(place: Path) -> None:
    model = LanguageModel(folder("llama", "genai", place))
    prompt = [5] * (model.positions - 3)
    assert len(list(model.generate(prompt, 9, beams=3))) <= 3
    assert list(model.generate(prompt, 0, beams=3)) == []


def test_a_conversation_after_beam_search(place: Path) -> None:
    """The next turn computes the whole prompt again, whatever the beams left in the session."""
    for form in FORMS:
        model = LanguageModel(folder("llama", form, place))
        answer = list(model.generate(recorded.PROMPT, 5, beams=3))
        longer = [*recorded.PROMPT, *answer, 7]
        expected = list(LanguageModel(model.folder).generate(longer, 5))
        assert list(model.generate(longer, 5)) == expected
        # a prompt that continues the tokens in the cache
        assert list(model.generate([*longer, *expected, 9], 5, beams=3)) == list(
            LanguageModel(model.folder).generate([*longer, *expected, 9], 5, beams=3)
        )


@pytest.mark.filterwarnings("ignore::onnx_specops.generation.SettingWarning")
def test_beams_exclude_sampling(place: Path) -> None:
    model = LanguageModel(folder("llama", "genai", place))
    for sampling in (Sampling(do_sample=True), Sampling(presence_penalty=1.0), Sampling(frequency_penalty=1.0)):
        with pytest.raises(GenerationError, match="beam search does not support sampling"):
            list(model.generate([5], 4, sampling, beams=2))
    with pytest.raises(GenerationError, match="number of beams must be at least 1, not 0"):
        list(model.generate([5], 4, beams=0))


@pytest.mark.parametrize("form", FORMS)
def test_stop_strings(form: str, place: Path, tmp_path: Path) -> None:
    """A text that ends the output is not part of the text, but its tokens are generated."""
    source = folder("llama", form, place)
    model = LanguageModel(source)
    for beams in (None, 3):
        text = "".join(model.write("Once upon a time", 24, beams=beams))
        whole = model.given
        stop = text[4:7]
        assert text.index(stop) == 4
        place_of_stop = next(k for k in range(1, len(whole)) if stop in model.decode(whole[:k]))
        stated = LanguageModel(with_settings(source, tmp_path / f"{form}{beams}", {"stop_strings": [stop, "\0never"]}))
        if beams is None:
            assert "".join(stated.write("Once upon a time", 24)) == text[:4]
            assert list(stated.generate(stated.encode("Once upon a time"), 24)) == whole[:place_of_stop]
            assert list(model.generate(model.encode("Once upon a time"), 24, stop=[stop])) == whole[:place_of_stop]
            assert "".join(model.write("Once upon a time", 24, stop=[stop])) == text[:4]
            assert "".join(stated.write("Once upon a time", 24, stop=[text[2:4]])) == text[:2]
        else:  # other texts may now be better
            first = "".join(stated.write("Once upon a time", 24, beams=beams))
            assert first == "".join(model.write("Once upon a time", 24, stop=[stop], beams=beams))
            texts = [model.decode(found.tokens) for found in stated.hypotheses]
            assert stop not in first and first == texts[0].split(stop)[0]
            assert all(stop not in model.decode(found.tokens[:-1]) for found in stated.hypotheses)


@pytest.mark.parametrize(
    "settings",
    [
        {"stop_strings": 3}, {"stop_strings": [""]}, {"stop_strings": [4]}, {"sequence_bias": {"1": 2.0}},
        {"sequence_bias": [[[], 1.0]]}, {"sequence_bias": [[[-1], 1.0]]}, {"sequence_bias": [[3, 1.0]]},
        {"exponential_decay_length_penalty": 3}, {"exponential_decay_length_penalty": [1]},
        {"exponential_decay_length_penalty": [1, "x"]}, {"forced_eos_token_id": 320}, {"forced_eos_token_id": [-1]},
        {"forced_bos_token_id": 320}, {"sequence_bias": [[[4, 320], 1.0]]}, {"bad_words_ids": 3}, {"suppress_tokens": "x"},
    ],
    ids=str,
)  # fmt: skip
def test_invalid_settings(settings: dict[str, Any], place: Path, tmp_path: Path) -> None:
    target = with_settings(folder("llama", "genai", place), tmp_path / "out", settings)
    with pytest.raises(GenerationError, match=r"generation_config\.json has an invalid setting"):
        "".join(LanguageModel(target).write("a", 2))


@pytest.mark.parametrize("penalty", [65, -65, float("nan"), float("inf"), "x", [1]])
def test_an_invalid_length_penalty(penalty: Any, place: Path, tmp_path: Path) -> None:
    model = LanguageModel(with_settings(folder("llama", "genai", place), tmp_path / "out", {"length_penalty": penalty}))
    with pytest.raises(GenerationError, match=r"generation_config\.json has an invalid setting"):
        list(model.generate(recorded.PROMPT, 2, beams=3))


def test_end_tokens_outside_the_vocabulary_have_no_logits() -> None:
    settings = {"exponential_decay_length_penalty": [0, 2.0]}
    scores = Constraints.of(settings, [-1, 2, 10]).applied(np.full(10, -1, np.float32), [0, 1, 4])
    assert scores.tolist() == [-1, -1, 2, *[-1] * 7]


def test_longer_words_than_the_text() -> None:
    """transformers ignores words that are longer than the text so far."""
    constraints = Constraints.of(
        {"bad_words_ids": [[1, 2, 3], [2, 4]], "sequence_bias": [[[1, 2, 5], 2.0], [[2, 6], 3.0]]}, [9]
    )
    scores = constraints.applied(np.zeros(10, np.float32), [1, 2])
    assert np.isneginf(scores).nonzero()[0].tolist() == [4] and scores[[5, 6]].tolist() == [0, 3]
    scores = constraints.applied(np.zeros(10, np.float32), [0, 1, 2])
    assert np.isneginf(scores).nonzero()[0].tolist() == [3, 4] and scores[[5, 6]].tolist() == [2, 3]


def test_forbidden_end_tokens_stay_forbidden() -> None:
    """transformers would choose them, because the sum of infinities is NaN."""
    settings = {"exponential_decay_length_penalty": [0, 2.0], "suppress_tokens": [3], "min_length": 9}
    scores = Constraints.of(settings, [2, 9]).applied(np.full(10, -1, np.float32), [0, 1, 4])
    assert np.isneginf(scores).nonzero()[0].tolist() == [2, 3, 9]
    scores = Constraints.of({**settings, "min_length": 0}, [2, 9]).applied(np.full(10, -1, np.float32), [0, 1, 4])
    assert scores[[2, 9]].tolist() == [2, 2]  # after two tokens, the logit grows by three times its magnitude


def test_numbers_that_are_not_finite() -> None:
    logits = np.array([np.nan, np.inf, -np.inf, 1], np.float32)
    most = np.finfo(np.float32).max
    assert Constraints.of({"remove_invalid_values": True}, []).applied(logits, [0]).tolist() == [0, most, -most, 1]
    assert np.isnan(Constraints.of({}, []).applied(logits, [0])[0])


# -- settings that are not applied ------------------------------------------------------------------------------------------


def test_names_of_settings_that_are_not_applied() -> None:
    assert not_applied({}) == not_applied({"num_beams": 1, "guidance_scale": None, "temperature": 0.5}) == []
    assert not_applied({"num_beams": 4, "guidance_scale": 2.0, "diversity_penalty": 0.0}) == ["guidance_scale", "num_beams"]
    assert not_applied({"do_sample": True, "top_p": 0.9, "top_k": 0, "typical_p": 0.5}) == [
        "do_sample",
        "top_p",
        "typical_p",
    ]


@needs_pcre2
def test_a_remark_names_them(place: Path, tmp_path: Path) -> None:
    settings = {"num_beams": 4, "do_sample": True, "top_p": 0.9, "penalty_alpha": 0.6}
    target = with_settings(folder("llama", "genai", place), tmp_path / "out", settings)
    with pytest.warns(SettingWarning, match="settings that are not applied: num_beams, penalty_alpha, do_sample, top_p"):
        LanguageModel(target)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        LanguageModel(folder("llama", "genai", place))
    result = specops("generate", target, "Once", "--tokens", 2)
    assert result.exit_code == 0
    told = " ".join(result.stderr.split())
    assert "num_beams, penalty_alpha, do_sample, top_p of generation_config.json are not applied" in told
    assert "instead, specify --beams, --top-p" in told
    document = as_json(specops("generate", target, "Once", "--tokens", 2, "--beams", 2, "--json"))
    assert document["remarks"] == [
        "penalty_alpha, do_sample, top_p of generation_config.json are not applied; instead, specify --top-p"
    ]
    document = as_json(specops("generate", target, "Once", "--tokens", 2, "--top-p", 0.5, "--json"))
    assert document["remarks"] == [
        "num_beams, penalty_alpha of generation_config.json are not applied; instead, specify --beams"
    ]


@needs_pcre2
def test_the_command(place: Path, tmp_path: Path) -> None:
    target = folder("llama", "genai", place)
    model = LanguageModel(target)
    text = "".join(model.write("Once upon a time", 12, beams=3))
    document = as_json(specops("generate", target, "Once upon a time", "--tokens", 12, "--beams", 3, "--json"))
    assert document["text"] == text and document["ids"] == model.given
    assert [one["ids"] for one in document["hypotheses"]] == [list(one.tokens) for one in model.hypotheses]
    assert document["hypotheses"][0]["text"] == text and document["remarks"] == []
    chatty = with_settings(target, tmp_path / "out", {})
    (chatty / "chat_template.jinja").write_text("{% for one in messages %}{{ one.content }}{% endfor %}")
    asked = [{"role": "user", "content": "Once upon a time"}]
    answer = "".join(LanguageModel(chatty).chat(asked, 12, beams=3))
    document = as_json(specops("generate", chatty, asked[0]["content"], "--tokens", 12, "--beams", 3, "--chat", "--json"))
    assert document["text"] == answer


@needs_pcre2
def test_the_command_with_recordings(place: Path, tmp_path: Path) -> None:
    from tests.language.test_transcripts import write_wav

    target = folder(recorded.SPEECH, "genai", place)
    sound = write_wav(tmp_path / "sound.wav", transcripts.recording(1.0))
    model = open_model(target)
    text = "".join(model.write("", 8, audio=sound, beams=3))  # type: ignore[call-arg]
    document = as_json(specops("generate", target, "--audio", sound, "--tokens", 8, "--beams", 3, "--json"))
    assert document["text"] == text and len(document["hypotheses"]) == 3
