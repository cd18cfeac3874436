"""The settings of genai_config.json that come from generation_config.json and config.json."""

from __future__ import annotations

import json
from typing import Any

import pytest

from converters.errors import ConversionError
from tests.converters.folders.genai_folder import Folder

GENERATION = "generation_config.json"


@pytest.fixture(scope="module")
def whisper(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    return Folder("speech/whisper_speech", tmp_path_factory.mktemp("whisper"))


@pytest.fixture(scope="module")
def gemma(tmp_path_factory: pytest.TempPathFactory) -> Folder:
    return Folder("vision/gemma3", tmp_path_factory.mktemp("gemma"))


@pytest.mark.parametrize(
    ("stated", "found"),
    [
        ({}, {"num_beams": 1, "early_stopping": False, "top_k": 50}),
        ({"num_beams": 3, "early_stopping": True}, {"num_beams": 3, "early_stopping": True}),
        ({"early_stopping": "never"}, {"early_stopping": False}),
        ({"num_beams": 2, "num_return_sequences": 2}, {"num_beams": 2, "num_return_sequences": 2}),
        ({"top_k": 10**6, "top_p": 1}, {"top_k": 320, "top_p": 1.0}),  # onnxruntime-genai rejects more than the vocabulary
        ({"temperature": 0}, {"temperature": 0.0}),
    ],
)
def test_search(stated: dict[str, Any], found: dict[str, Any], llama: Folder) -> None:
    llama.written(generation_config=stated)
    search = llama.config["search"]
    assert {name: search[name] for name in found} == found


@pytest.mark.parametrize(
    ("stated", "expected"),
    [
        ({"num_beams": 0}, "num_beams is 0; expected a number from 1 to 32"),
        ({"num_beams": 33}, "num_beams is 33; expected a number from 1 to 32"),
        ({"num_return_sequences": 0}, "num_return_sequences is 0; expected 1 to the number of beams"),
        ({"num_beams": 2, "num_return_sequences": 3}, "num_return_sequences is 3; expected 1 to the number of beams"),
        ({"top_p": 1.5}, "top_p is 1.5; expected a number from 0 to 1"),
        ({"temperature": -1.0}, "temperature is -1.0; expected 0 or a positive number"),
        ({"repetition_penalty": 0}, "repetition_penalty is 0; expected a positive number"),
        ({"early_stopping": "sometimes"}, "early_stopping is 'sometimes'; expected true or false"),
        ({"pad_token_id": 2**40}, "pad_token_id is 1099511627776; expected a token"),
    ],
)
def test_values_that_onnxruntime_genai_rejects(stated: dict[str, Any], expected: str, llama: Folder) -> None:
    with pytest.raises(ConversionError) as raised:
        llama.written(generation_config=stated)
    (problem,) = raised.value.problems
    assert problem.message == f"its {expected}" and problem.file == str(llama.source / GENERATION)


@pytest.mark.parametrize(
    ("stated", "ignored"),
    [
        ({"suppress_tokens": [3], "min_new_tokens": 2}, "min_new_tokens, suppress_tokens"),
        ({"early_stopping": "never"}, "early_stopping"),
        ({"min_p": 0.1}, "min_p"),
        ({"watermarking_config": {"bias": 2.0}, "renormalize_logits": True}, "renormalize_logits, watermarking_config"),
        ({"renormalize_logits": False, "token_healing": False, "max_time": None}, ""),
        ({"min_p": 0.0, "typical_p": 1.0, "guidance_scale": 1, "bad_words_ids": [], "no_repeat_ngram_size": 2}, ""),
    ],
)
def test_settings_that_onnxruntime_genai_ignores_are_reported(stated: dict[str, Any], ignored: str, llama: Folder) -> None:
    remarks = [remark for remark in llama.written(generation_config=stated).remarks if "does not apply" in remark]
    assert remarks == ([f"onnxruntime-genai does not apply {ignored} of {GENERATION}"] if ignored else [])


def test_an_assumed_end_token_is_reported(llama: Folder) -> None:
    remark = f"neither config.json nor {GENERATION} states an end token: 2 is assumed"
    assert remark not in llama.written().remarks
    none = {"eos_token_id": None}
    assert remark in llama.written(config=none, generation_config=none).remarks
    assert llama.config["model"]["eos_token_id"] == 2


def test_positions_beyond_32_bits(llama: Folder) -> None:
    llama.written(config={"max_position_embeddings": 2**40})
    assert llama.config["model"]["context_length"] == llama.config["search"]["max_length"] == 2**31 - 1


def test_the_fill_token_of_several_end_tokens(llama: Folder, whisper: Folder) -> None:
    """onnxruntime-genai cannot read a list of them."""
    several = {"eos_token_id": [7, 8], "pad_token_id": None}
    for folder in (llama, whisper):
        folder.written(config=several, generation_config=several)
        model = folder.config["model"]
        assert model["eos_token_id"] == [7, 8] and model["pad_token_id"] == 7


def test_beams_for_images(gemma: Folder) -> None:
    """onnxruntime-genai does not support them."""
    written = gemma.written(generation_config={"num_beams": 3, "num_return_sequences": 2})
    assert gemma.config["search"]["num_beams"] == gemma.config["search"]["num_return_sequences"] == 1
    assert sum("does not support beam search" in remark for remark in written.remarks) == 1
    assert not any("beam search" in remark for remark in gemma.written().remarks)


def test_the_interpolation_of_images(gemma: Folder) -> None:
    """transformers' default for Gemma 3 is 2."""
    for stated, found in ((None, "LINEAR"), (2, "LINEAR"), (3, "CUBIC")):
        gemma.written(preprocessor_config={"resample": stated})
        steps = json.loads((gemma.out / "image_processor_config.json").read_text())["processor"]["transforms"]
        (resize,) = (step["operation"]["attrs"] for step in steps if step["operation"]["type"] == "Resize")
        assert resize["interpolation"] == found
