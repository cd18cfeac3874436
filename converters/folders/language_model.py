"""The configuration of a language model's folder."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from converters.folders.path_errors import AS_WRITTEN, path_error

DECODER = "openvino_model.xml"
LANGUAGE = "openvino_language_model.xml"
"""The decoder of embeddings in a folder of images or audio and text."""

_POSITIONS = ("max_position_embeddings", "n_positions", "n_ctx", "max_sequence_length", "seq_length", "max_seq_len")
_OTHER_KINDS = {
    LANGUAGE: "a multimodal model, whose decoder takes embeddings",
    "openvino_decoder_model.xml": "an encoder with a decoder",
    "openvino_decoder_with_past_model.xml": "an encoder with a decoder",
    "model_index.json": "a pipeline of several models",
}


@dataclass(frozen=True)
class LanguageModel:
    """A language model's folder.

    Attributes:
        folder: its path.
        config: its config.json; that of the text part if it has several.
        generation: its generation_config.json.
    """

    folder: Path
    config: dict[str, Any]
    generation: dict[str, Any] = field(default_factory=dict)

    @property
    def decoder(self) -> Path:
        """The IR that computes the next token."""
        return self.folder / DECODER

    @property
    def positions(self) -> int | None:
        """The maximum number of tokens of the model."""
        found = [self.config[name] for name in _POSITIONS if isinstance(self.config.get(name), int)]
        return found[0] if found and found[0] > 0 else None

    def token(self, name: str) -> Any:
        """Return ``bos_token_id`` or another id: a number, a list of numbers, or ``None``."""
        given = self.generation.get(name)
        return self.config.get(name) if given is None else given

    def check_vocabulary(self, size: int) -> None:
        """Check the ids of the tokenizer; see `check_vocabulary`."""
        check_vocabulary(self.folder, size)


def check_vocabulary(folder: Path, size: int) -> None:
    """Raise `ConversionError` if the tokenizer returns ids beyond the model's vocabulary of ``size`` tokens."""
    path = folder / "tokenizer.json"
    if not path.is_file():
        return
    highest = _highest_id(_read(path))
    if highest >= size:
        message = f"it has tokens up to {highest}, but the model has {size}: the tokenizer is from another model"
        raise path_error(path, message, "use the tokenizer of the model")


def read_language_model(folder: Path) -> LanguageModel:
    """Read a language model's folder.

    Raises:
        ConversionError: the folder has another kind of model, or none.
    """
    if not (folder / DECODER).is_file():
        for name, kind in _OTHER_KINDS.items():
            if (folder / name).is_file():
                message = f"it contains {kind}; --genai requires {DECODER}, a single decoder of text"
                raise path_error(folder, message, "convert it without --genai")
        raise path_error(folder, f"it contains no {DECODER}", AS_WRITTEN)
    return read_configurations(folder)


def read_configurations(folder: Path) -> LanguageModel:
    """Read config.json and generation_config.json.

    Raises:
        ConversionError: config.json is missing, or a file is damaged.
    """
    if not (folder / "config.json").is_file():
        raise path_error(folder, "it has no config.json", "add the config.json of the model")
    config = _read(folder / "config.json")
    config = {**config, **config.get("text_config", {})} if isinstance(config.get("text_config"), dict) else config
    generation = folder / "generation_config.json"
    return LanguageModel(folder, config, _read(generation) if generation.is_file() else {})


def _read(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, OSError) as error:
        raise path_error(path, f"it cannot be read: {error}", "obtain the file again") from error
    if not isinstance(found, dict):
        raise path_error(path, "it is not a JSON object", "obtain the file again")
    return found


def _highest_id(tokenizer: dict[str, Any]) -> int:
    ids = [token.get("id", -1) for token in tokenizer.get("added_tokens") or () if isinstance(token, dict)]
    vocabulary = (tokenizer.get("model") or {}).get("vocab")
    if isinstance(vocabulary, dict):
        ids += vocabulary.values()
    elif isinstance(vocabulary, list):
        ids.append(len(vocabulary) - 1)
    return max((number for number in ids if isinstance(number, int)), default=-1)
