"""Create tests/language/searches.json: the tokens that transformers generates with the models of tests/language in OpenVINO.

The settings are those of generation_config.json, with beam search and without it. ``negative_prompt_ids`` is an argument of
transformers. Run with optimum-intel and transformers 4.53 installed. Version 4.57 does not contain the search in groups:

    python -m tests.language.record_searches
"""

from __future__ import annotations

import json
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from tests.folders import transcripts

HERE = Path(__file__).parent
SEARCHES = HERE / "searches.json"

PROMPT, COUNT = [5, 17, 200, 33, 33, 98], 10
_EXACT = {"INFERENCE_PRECISION_HINT": "f32", "KV_CACHE_PRECISION": "f32", "DYNAMIC_QUANTIZATION_GROUP_SIZE": "0"}
_ENDS = [12, 53, 107, 108, 111, 158, 194, 222, 232, 237, 266, 274]
_BEAMS: list[dict[str, Any]] = [
    {},
    {"length_penalty": 2.0, "early_stopping": "never"},
    {"length_penalty": -1.0, "early_stopping": True},
    {"repetition_penalty": 1.5, "no_repeat_ngram_size": 2, "forced_eos_token_id": 11},
    {"sequence_bias": [[[44], 4.0], [[98, 250], 9.0]], "renormalize_logits": True},
    {"exponential_decay_length_penalty": [1, 1.5]},
]
_GROUPS: list[dict[str, Any]] = [
    {"num_beams": 4, "num_beam_groups": 2, "diversity_penalty": 1.5},
    {"num_beams": 6, "num_beam_groups": 3, "diversity_penalty": 0.3, "length_penalty": -1.0, "early_stopping": True},
    {"num_beams": 3, "num_beam_groups": 3, "diversity_penalty": 0.7, "early_stopping": "never", "repetition_penalty": 1.3,
     "sequence_bias": [[[44], 3.0]]},
    {"num_beams": 4, "num_beam_groups": 2, "diversity_penalty": 0.2, "length_penalty": 2.0, "renormalize_logits": True},
]  # fmt: skip
GUIDED: list[dict[str, Any]] = [
    {"guidance_scale": 1.7},
    {"guidance_scale": 0.4, "negative_prompt_ids": [9, 8, 7, 6, 5, 4, 3, 2, 9]},
    {"guidance_scale": 3, "negative_prompt_ids": [300], "repetition_penalty": 1.4, "no_repeat_ngram_size": 1},
    {"guidance_scale": 2.5, "negative_prompt_ids": [9, 8, 7], "num_beams": 3, "eos_token_id": _ENDS},
    {"guidance_scale": -0.5, "num_beams": 4, "num_beam_groups": 2, "diversity_penalty": 0.5, "eos_token_id": _ENDS},
]
SETTINGS: list[dict[str, Any]] = [
    *({"num_beams": 3, "eos_token_id": _ENDS, **given} for given in _BEAMS),
    {"sequence_bias": [[[44], 5.0], [[44, 44], -20.0], [[33, 98, 44], -9.0], [[98, 44], 4.0]]},
    {"exponential_decay_length_penalty": [2, 1.3], "eos_token_id": [7, 300]},
    {"bad_words_ids": [[*PROMPT, 44], [98, 250]], "remove_invalid_values": True},
    *({"eos_token_id": _ENDS, "pad_token_id": 3, **given} for given in _GROUPS),
    *GUIDED,
]
MODELS = ("llama", "gpt2", "lfm2")

HYBRIDS = ("lfm2_moe", "granite_hybrid", "qwen3_5", "qwen3_next", "mamba", "falcon_mamba", "zamba2")
SETTINGS_OF_HYBRIDS = [
    {"num_beams": 3, "eos_token_id": _ENDS},
    {"num_beams": 4, "num_beam_groups": 2, "diversity_penalty": 1.5, "eos_token_id": _ENDS, "pad_token_id": 3},
    {"guidance_scale": 1.7, "negative_prompt_ids": [9, 8, 7]},
]
_STATE_SPACES = ("mamba", "falcon_mamba", "zamba2")
"""Models that extend their states by one token at a time, and whose results depend on that."""

PAIRS = ("t5_text", "bart_text")
SETTINGS_OF_PAIRS: list[dict[str, Any]] = [
    {"num_beams": 3},
    {"num_beams": 3, "length_penalty": -1.0, "early_stopping": True, "eos_token_id": [*range(2, 300, 9)]},
    {"num_beams": 4, "length_penalty": 2.0, "early_stopping": "never", "no_repeat_ngram_size": 2},
    {"num_beams": 4, "num_beam_groups": 2, "diversity_penalty": 1.5, "pad_token_id": 3},
    {"num_beams": 3, "num_beam_groups": 3, "diversity_penalty": 0.5, "eos_token_id": [*range(2, 300, 9)], "pad_token_id": 3},
]

SPEECH = "whisper_transcripts"
# Without a language, transformers omits the task; OpenVINO GenAI and this package do not.
_OF_SPEECH: list[dict[str, Any]] = [
    {"language": "fr"},
    {"language": "german", "task": "translate"},
    {"forced_decoder_ids": [[1, 304], [2, 306]]},
    {"language": "<|ja|>", "return_timestamps": True, "no_repeat_ngram_size": 2},
    {"language": "fr", "repetition_penalty": 1.5, "min_new_tokens": 3},
]
SETTINGS_OF_SPEECH: list[dict[str, Any]] = [
    *_OF_SPEECH,
    *({"num_beams": beams, **given} for beams, given in zip((2, 3, 4, 5, 3), _OF_SPEECH, strict=True)),
    {"num_beams": 3, "length_penalty": -1.0, "early_stopping": True, "return_timestamps": True, "language": "fr"},
    {"num_beams": 3, "renormalize_logits": True, "return_timestamps": True, "language": "fr"},
]
SECONDS, COUNT_OF_SPEECH = 2.5, 14


def archive(name: str) -> Path:
    """Return the archive of a model."""
    return next(path for path in HERE.glob(f"*/{name}.zip"))


def of_speech(settings: dict[str, Any], stated: dict[str, Any]) -> dict[str, Any]:
    """Return the settings of a recording, beside those in generation_config.json.

    Timestamps are forbidden unless they are requested: transformers would split the recording at them.
    """
    if settings.get("return_timestamps"):
        return settings
    first = stated["no_timestamps_token_id"] + 1
    return {**settings, "suppress_tokens": [*stated["suppress_tokens"], *range(first, first + 1501)]}


def in_openvino(folder: Path, first: int | None = None) -> Any:
    """Return a model of transformers that computes each text from its beginning in OpenVINO.

    optimum-intel does not reorder the states of hybrids for beam search.

    Args:
        folder: the folder of the IR.
        first: the number of tokens of the first run, after which each run has one token. By default, the first has all.
    """
    import openvino as ov
    import torch
    from transformers import GenerationConfig, GenerationMixin, PretrainedConfig, PreTrainedModel
    from transformers.modeling_outputs import CausalLMOutput

    request = ov.Core().compile_model(folder / "openvino_model.xml", "CPU", _EXACT).create_infer_request()
    names = {port.any_name for port in request.model_inputs}

    class Whole(PreTrainedModel, GenerationMixin):  # type: ignore[misc]
        config_class = PretrainedConfig
        main_input_name = "input_ids"
        _is_stateful = True  # there is no cache

        def __init__(self, config: Any) -> None:
            super().__init__(config)
            self.none = torch.nn.Parameter(torch.zeros(1))

        def forward(self, input_ids: Any, **_: Any) -> Any:
            rows, count = input_ids.shape
            begin = count if first is None else min(first, count)
            request.reset_state()
            for start, ids in enumerate(np.split(input_ids.numpy(), range(begin, count), axis=1), begin - 1):
                past, new = (0 if start < begin else start), ids.shape[1]
                feeds = {
                    "input_ids": ids,
                    "attention_mask": np.ones((rows, count if first is None else new), np.int64),
                    "position_ids": np.tile(np.arange(past, past + new), (rows, 1)),
                    "beam_idx": np.arange(rows, dtype=np.int32),
                    "cache_position": np.array([past]) if past else np.arange(4),
                }
                found = request.infer({name: feeds[name] for name in names})["logits"].copy()
            return CausalLMOutput(logits=torch.from_numpy(found))

        def prepare_inputs_for_generation(self, input_ids: Any, **_: Any) -> dict[str, Any]:
            return {"input_ids": input_ids}

        def _validate_model_kwargs(self, _: Any) -> None:
            """Accept all: an attention_mask of a complete text has no effect."""

    config = json.loads((folder / "config.json").read_text())
    config = {**config, **config.get("text_config", {})}
    model = Whole(PretrainedConfig(vocab_size=config["vocab_size"], is_encoder_decoder=False, use_cache=False))
    model.generation_config = GenerationConfig()
    return model


def set_guidance(model: Any, scale: float, negative: list[int]) -> None:
    """Replace transformers' guidance by the same formula, with a text after the negative prompt for each beam.

    transformers does not reorder the caches of these texts.
    """
    import torch

    def guided(ids: Any, scores: Any) -> Any:
        other = torch.cat([torch.tensor([negative] * len(ids)), ids[:, len(PROMPT) :]], dim=1)
        logits = torch.log_softmax(model(other).logits[:, -1], dim=-1)
        return scale * (torch.log_softmax(scores, dim=-1) - logits) + logits

    others = model._get_logits_processor

    def first(*arguments: Any, **named: Any) -> Any:
        processors = others(*arguments, **named)
        processors.insert(0, guided)
        return processors

    model._get_logits_processor = first


def texts() -> list[dict[str, Any]]:
    """Return transformers' texts for each model and setting, the best one first, with end tokens, and their scores."""
    import torch
    from transformers import GenerationConfig

    found = []
    for name in (*MODELS, *HYBRIDS):
        with tempfile.TemporaryDirectory() as place:
            with zipfile.ZipFile(archive(name)) as file:
                file.extractall(place)
            for settings in SETTINGS if name in MODELS else SETTINGS_OF_HYBRIDS:
                beams = settings.get("num_beams", 1)
                told = {"eos_token_id": 0, "pad_token_id": 0, **settings, "max_new_tokens": COUNT, "do_sample": False}
                negative, more = told.pop("negative_prompt_ids", None), dict[str, Any]()
                model = in_openvino(Path(place), len(PROMPT) if name in _STATE_SPACES else None)
                if "guidance_scale" in told and (beams > 1 or name in _STATE_SPACES):
                    set_guidance(model, told.pop("guidance_scale"), negative or PROMPT[-1:])
                elif negative is not None:
                    more["negative_prompt_ids"] = torch.tensor([negative])
                config = GenerationConfig(num_return_sequences=beams, bos_token_id=1, use_cache=False, **told)
                ids = torch.tensor([PROMPT])
                result = model.generate(
                    ids, generation_config=config, attention_mask=torch.ones_like(ids), output_scores=True,
                    return_dict_in_generate=True, **more,
                )  # fmt: skip
                scores = result.sequences_scores.tolist() if beams > 1 else []
                tokens = [text[len(PROMPT) :] for text in result.sequences.tolist()]
                found.append({"model": name, "settings": settings, "tokens": tokens, "scores": scores})
    return found


def answers() -> list[dict[str, Any]]:
    """Return transformers' texts of encoder-decoders for each setting, the best one first, and their scores."""
    import torch
    from optimum.intel import OVModelForSeq2SeqLM
    from transformers import GenerationConfig

    found = []
    for name in PAIRS:
        with tempfile.TemporaryDirectory() as place:
            with zipfile.ZipFile(archive(name)) as file:
                file.extractall(place)
            model = OVModelForSeq2SeqLM.from_pretrained(place, ov_config=_EXACT, device="CPU")
            stated = json.loads((Path(place) / "generation_config.json").read_text())
            for settings in SETTINGS_OF_PAIRS:
                told = {"pad_token_id": 0, **stated, **settings, "max_new_tokens": COUNT, "do_sample": False}
                config = GenerationConfig(num_return_sequences=settings["num_beams"], **told)
                model.generation_config = config
                ids = torch.tensor([PROMPT])
                result = model.generate(
                    ids, generation_config=config, attention_mask=torch.ones_like(ids), output_scores=True,
                    return_dict_in_generate=True,
                )  # fmt: skip
                tokens = [text[1:] for text in result.sequences.tolist()]
                scores = result.sequences_scores.tolist()
                found.append({"model": name, "settings": settings, "tokens": tokens, "scores": scores})
    return found


def recordings() -> list[dict[str, Any]]:
    """Return transformers' tokens of a recording for each setting, without special tokens."""
    from optimum.intel import OVModelForSpeechSeq2Seq
    from transformers import GenerationConfig, WhisperFeatureExtractor

    found = []
    with tempfile.TemporaryDirectory() as place:
        with zipfile.ZipFile(archive(SPEECH)) as file:
            file.extractall(place)
        stated = json.loads((Path(place) / "generation_config.json").read_text())
        model = OVModelForSpeechSeq2Seq.from_pretrained(place, ov_config=_EXACT, device="CPU")
        extractor = WhisperFeatureExtractor.from_pretrained(place)
        sound = transcripts.recording(SECONDS)
        features = extractor(sound, sampling_rate=transcripts.RATE, return_tensors="pt").input_features
        special = {
            stated["eos_token_id"], stated["decoder_start_token_id"], stated["no_timestamps_token_id"],
            *stated["lang_to_id"].values(), *stated["task_to_id"].values(),
        }  # fmt: skip
        for settings in SETTINGS_OF_SPEECH:
            told = {**stated, "return_timestamps": False, **of_speech(settings, stated)}
            del told["max_length"]
            config = GenerationConfig(
                **told, max_new_tokens=COUNT_OF_SPEECH, do_sample=False, pad_token_id=told["eos_token_id"]
            )
            model.generation_config = config
            tokens = model.generate(features, generation_config=config)[0].tolist()
            kept = [token for token in tokens if token not in special and token < stated["no_timestamps_token_id"]]
            found.append({"model": SPEECH, "settings": settings, "tokens": [kept], "scores": []})
    return found


if __name__ == "__main__":
    lines = ",\n ".join(json.dumps(row) for row in [*texts(), *answers(), *recordings()])
    SEARCHES.write_text(f"[{lines}]\n")
