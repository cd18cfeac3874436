"""The configuration of a language model's folder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from converters.folders.layouts import read_object
from converters.folders.path_errors import AS_WRITTEN, path_error
from converters.folders.stated import Stated, is_integer

DECODER = "openvino_model.xml"
LANGUAGE = "openvino_language_model.xml"
"""The decoder of embeddings in a folder of images or audio and text."""

TEXT_EMBEDDINGS = "openvino_text_embeddings_model.xml"
"""The embeddings of tokens in such a folder."""

_POSITIONS = ("max_position_embeddings", "n_positions", "n_ctx", "max_sequence_length", "seq_length", "max_seq_len")
_MOST_POSITIONS = (1 << 31) - 1
_OTHER_KINDS = {
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
    def stated(self) -> Stated:
        """The values of config.json, with those of its text part."""
        return Stated(self.folder / "config.json", self.config)

    @property
    def positions(self) -> int | None:
        """The maximum number of tokens of the model."""
        found = [self.config[name] for name in _POSITIONS if is_integer(self.config.get(name))]
        return min(found[0], _MOST_POSITIONS) if found and found[0] > 0 else None

    def token(self, name: str) -> Any:
        """Return ``bos_token_id`` or another id: a number, a list of numbers (of end tokens only), or ``None``.

        Raises:
            ConversionError: the value is of another type.
        """
        generation = Stated(self.folder / "generation_config.json", self.generation)
        stated = self.stated if self.generation.get(name) is None else generation
        found = stated.values.get(name)
        several = name == "eos_token_id" and isinstance(found, list) and bool(found)
        if found is not None and not all(is_integer(one) and abs(one) < 1 << 31 for one in (found if several else [found])):
            raise stated.invalid(name, "a token or a list of tokens" if name == "eos_token_id" else "a token")
        return found

    def check_vocabulary(self, size: int) -> None:
        """Check the ids of the tokenizer; see `check_vocabulary`."""
        check_vocabulary(self.folder, size)


def check_vocabulary(folder: Path, size: int) -> None:
    """Raise `ConversionError` if the tokenizer returns ids beyond the model's vocabulary of ``size`` tokens."""
    path = folder / "tokenizer.json"
    if not path.is_file():
        return
    highest = _highest_id(read_object(path))
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
    config = dict(read_object(folder / "config.json"))
    if (text := config.get("text_config")) is not None:
        if not isinstance(text, dict):
            raise Stated(folder / "config.json", config).invalid("text_config", "an object")
        config |= text
    generation = folder / "generation_config.json"
    return LanguageModel(folder, config, dict(read_object(generation)) if generation.is_file() else {})


def _highest_id(tokenizer: Mapping[str, Any]) -> int:
    added = tokenizer.get("added_tokens")
    ids = [token.get("id", -1) for token in (added if isinstance(added, list) else ()) if isinstance(token, dict)]
    model = tokenizer.get("model")
    vocabulary = model.get("vocab") if isinstance(model, dict) else None
    if isinstance(vocabulary, dict):
        ids += vocabulary.values()
    elif isinstance(vocabulary, list):
        ids.append(len(vocabulary) - 1)
    return max((number for number in ids if isinstance(number, int)), default=-1)
