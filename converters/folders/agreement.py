"""Consistency checks of a folder: the components that a pipeline names, and the sizes in configurations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from converters.errors import ConversionError, Fault, Problem
from converters.folders.layouts import CONFIG, PIPELINE, config_of, read_object
from converters.folders.path_errors import AS_WRITTEN
from converters.formats import format_of
from converters.source import Dims

_IR = "openvino_model.xml"
_MIXED = "use the files of a single export"

_COMPONENTS = {
    "unet": "unet", "transformer": "transformer", "text_encoder": "text_encoder", "text_encoder_2": "text_encoder_2",
    "text_encoder_3": "text_encoder_3", "vae": "vae_decoder",
}  # fmt: skip
"""The components of pipelines that are IRs, and their folders. Only pipelines with image inputs have the VAE's encoder."""

_OTHER_COMPONENTS = ("tokenizer", "tokenizer_2", "tokenizer_3", "scheduler")

_DENOISER = (
    ("sample", 1, ("in_channels",)),
    ("encoder_hidden_states", -1, ("cross_attention_dim", "joint_attention_dim", "caption_channels")),
    ("pooled_projections", -1, ("pooled_projection_dim",)),
)
_TEXT = (("last_hidden_state", -1, ("hidden_size", "d_model")),)
_SIZES: dict[str, tuple[tuple[str, int, tuple[str, ...]], ...]] = {
    "unet": _DENOISER,
    "transformer": _DENOISER,
    "vae_decoder": (("latent_sample", 1, ("latent_channels",)),),
    "text_encoder": _TEXT,
    "text_encoder_2": _TEXT,
    "text_encoder_3": _TEXT,
}
"""Component -> an input or output, an axis, and the names of its size in the component's config.json."""

_LABELLED = (
    "ForSequenceClassification", "ForTokenClassification", "ForImageClassification", "ForAudioClassification",
    "ForAudioFrameClassification",
)  # fmt: skip
_NUMBERS_OF_LABELS = ("num_labels", "num_classes")  # the second in models of timm
_OF_VOCABULARY = ("ForMaskedLM", "ForCTC", "ForCausalLM")


def check_folder(folder: Path, models: Iterable[Path]) -> None:
    """Raise `ConversionError` if the files in a model folder are inconsistent."""
    if (folder / PIPELINE).is_file():
        check_pipeline(folder)
        return
    problems: list[Problem] = []
    for model in models:
        if (config := config_of(folder, model)) is not None:
            problems += model_problems(model, config)
    if problems:
        raise ConversionError.of(problems)


def check_pipeline(folder: Path) -> None:
    """Raise `ConversionError` with everything that is missing or inconsistent in a diffusion pipeline's folder."""
    index = read_object(folder / PIPELINE)
    problems: list[Problem] = []
    for name, part in _COMPONENTS.items():
        if not _is_named(index, name):
            continue
        path = folder / part / _IR
        if not path.is_file():
            problems.append(_problem(folder / PIPELINE, f"it names {name}, but {part}/{_IR} does not exist", AS_WRITTEN))
        elif (config := folder / part / CONFIG).is_file():
            try:
                sizes = read_object(config)
                graph = _Interface(path)
            except ConversionError as error:
                problems += error.problems
                continue
            for value, axis, keys in _SIZES.get(part, ()):
                problems += graph.differences(config, path, value, axis, {key: sizes.get(key) for key in keys})
    for name in _OTHER_COMPONENTS:
        if _is_named(index, name) and not (folder / name).is_dir():
            problems.append(_problem(folder / PIPELINE, f"it names {name}, but this folder does not exist", AS_WRITTEN))
    if not any(_is_named(index, name) for name in _COMPONENTS):
        problems.append(_problem(folder / PIPELINE, "it names no known model", AS_WRITTEN))
    if problems:
        raise ConversionError.of(problems)


def model_problems(model: Path, config: Path) -> list[Problem]:
    """Return the problems of an IR whose numbers of classes or tokens differ from its configuration.

    An unreadable IR is reported by its conversion.
    """
    try:
        config_values = read_object(config)
    except ConversionError as error:
        return list(error.problems)
    try:
        graph = _Interface(model)
    except ConversionError:
        return []
    kinds = config_values.get("architectures")
    kind = str(kinds[0]) if isinstance(kinds, list) and kinds else ""
    sizes: dict[str, Any] = {}
    if kind.endswith(_LABELLED):
        labels = config_values.get("id2label")
        stated = next((key for key in _NUMBERS_OF_LABELS if key in config_values), None)
        if isinstance(labels, dict):
            sizes = {"id2label": len(labels)}
        else:
            sizes = {stated: config_values[stated]} if stated else {"num_labels": 2}  # the default of transformers
    elif kind.endswith(_OF_VOCABULARY) and "padded_vocab_size" not in config_values:
        sizes = {"vocab_size": config_values.get("vocab_size")}
    return list(graph.differences(config, model, "logits", -1, sizes))


class _Interface:
    """The dimensions of a model's inputs and outputs by all of their names."""

    def __init__(self, path: Path) -> None:
        self._dims: dict[str, Dims | None] = {}
        with format_of(path).open(path, without_weights=True) as source:
            for port in (*source.inputs, *source.outputs):
                self._dims |= dict.fromkeys(port.names, port.dims)

    def differences(
        self, config: Path, model: Path, value: str, axis: int, config_values: Mapping[str, Any]
    ) -> Iterator[Problem]:
        """Yield a problem if the size of an axis differs from the configuration, which may state it under several names."""
        dims = self._dims.get(value)
        if not dims or not -len(dims) <= axis < len(dims) or dims[axis] is None:
            return
        stated = {
            key: size
            for key, size in config_values.items()
            if isinstance(size, int) and not isinstance(size, bool) and size > 0
        }
        if stated and dims[axis] not in stated.values():
            key, size = next(iter(stated.items()))
            message = f"{key} is {size}, but {value} of {model.name} has {dims[axis]}: they are from different models"
            yield _problem(config, message, _MIXED)


def _is_named(index: Mapping[str, Any], name: str) -> bool:
    config_values = index.get(name)
    return (
        isinstance(config_values, list) and len(config_values) == 2 and all(isinstance(text, str) for text in config_values)
    )


def _problem(path: Path, message: str, remedy: str) -> Problem:
    return Problem(message, str(path), remedy=remedy, fault=Fault.MALFORMED)
