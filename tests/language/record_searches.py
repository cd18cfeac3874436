"""Create tests/language/searches.json: the tokens that transformers generates with the models of tests/language in OpenVINO.

The settings are those of generation_config.json, with beam search and without it. Run with transformers and optimum-intel
installed:

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
SETTINGS: list[dict[str, Any]] = [
    *({"num_beams": 3, "eos_token_id": _ENDS, **given} for given in _BEAMS),
    {"sequence_bias": [[[44], 5.0], [[44, 44], -20.0], [[33, 98, 44], -9.0], [[98, 44], 4.0]]},
    {"exponential_decay_length_penalty": [2, 1.3], "eos_token_id": [7, 300]},
    {"bad_words_ids": [[*PROMPT, 44], [98, 250]], "remove_invalid_values": True},
]
MODELS = ("llama", "gpt2", "lfm2")

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


def in_openvino(folder: Path) -> Any:
    """Return a model of transformers that computes each text as a whole in OpenVINO.

    optimum-intel does not reorder the states of hybrids for beam search.
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
            ids = input_ids.numpy()
            rows, count = ids.shape
            feeds = {
                "input_ids": ids,
                "attention_mask": np.ones((rows, count), np.int64),
                "position_ids": np.tile(np.arange(count), (rows, 1)),
                "beam_idx": np.arange(rows, dtype=np.int32),
                "cache_position": np.arange(count),
            }
            request.reset_state()
            found = request.infer({name: feeds[name] for name in names})
            return CausalLMOutput(logits=torch.from_numpy(found["logits"].copy()))

        def prepare_inputs_for_generation(self, input_ids: Any, **_: Any) -> dict[str, Any]:
            return {"input_ids": input_ids}

        def _validate_model_kwargs(self, _: Any) -> None:
            """Accept all: an attention_mask of a complete text has no effect."""

    config = json.loads((folder / "config.json").read_text())
    model = Whole(PretrainedConfig(vocab_size=config["vocab_size"], is_encoder_decoder=False, use_cache=False))
    model.generation_config = GenerationConfig()
    return model


def texts() -> list[dict[str, Any]]:
    """Return transformers' texts for each model and setting, the best one first, with end tokens, and their scores."""
    import torch
    from transformers import GenerationConfig

    found = []
    for name in MODELS:
        with tempfile.TemporaryDirectory() as place:
            with zipfile.ZipFile(archive(name)) as file:
                file.extractall(place)
            model = in_openvino(Path(place))
            for settings in SETTINGS:
                beams = settings.get("num_beams", 1)
                told = {"eos_token_id": 0, **settings, "max_new_tokens": COUNT, "do_sample": False, "pad_token_id": 0}
                config = GenerationConfig(num_return_sequences=beams, bos_token_id=1, use_cache=False, **told)
                ids = torch.tensor([PROMPT])
                result = model.generate(
                    ids, generation_config=config, attention_mask=torch.ones_like(ids), output_scores=True,
                    return_dict_in_generate=True,
                )  # fmt: skip
                scores = result.sequences_scores.tolist() if beams > 1 else []
                tokens = [text[len(PROMPT) :] for text in result.sequences.tolist()]
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
    lines = ",\n ".join(json.dumps(row) for row in [*texts(), *recordings()])
    SEARCHES.write_text(f"[{lines}]\n")
