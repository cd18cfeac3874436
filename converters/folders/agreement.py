"""Consistency checks of a folder: the components that a pipeline names, and the sizes in configurations."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from converters.errors import ConversionError, Fault, Problem
from converters.folders.language_model import LANGUAGE, TEXT_EMBEDDINGS
from converters.folders.layouts import CONFIG, PIPELINE, PREFIX, config_of, read_object
from converters.folders.modules import modules_of_another_type
from converters.folders.path_errors import AS_WRITTEN
from converters.folders.processors import processor
from converters.folders.stated import is_integer, shown
from converters.folders.structure import DECODER_OF_A_PAIR, ENCODER_OF_A_PAIR, other_structure
from converters.formats import format_of
from converters.source import Dims
from onnx_specops.generation.settings import VOCABULARIES

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

_POSITIONS, _TARGET_POSITIONS = "max_source_positions", "max_target_positions"

_WEIGHTS = re.compile(r"self\.(?:model\.)?(.+\.weight)(?:_compressed)?$")
"""The names of constants that OpenVINO's PyTorch frontend gives to weights."""

_TOGETHER = ((ENCODER_OF_A_PAIR, DECODER_OF_A_PAIR), (LANGUAGE, TEXT_EMBEDDINGS))
"""Models that belong together."""

_SIZES_OF_PAIRS = (
    (ENCODER_OF_A_PAIR, "last_hidden_state", ("d_model",)),
    (DECODER_OF_A_PAIR, "logits", VOCABULARIES),
)
"""The models of encoder-decoders, and an output with the names of its size."""

_LABELLED = (
    "ForSequenceClassification", "ForTokenClassification", "ForImageClassification", "ForAudioClassification",
    "ForAudioFrameClassification",
)  # fmt: skip
_NUMBERS_OF_LABELS = ("num_labels", "num_classes")  # models of timm use the second name
_OF_VOCABULARY = ("ForMaskedLM", "ForCTC", "ForCausalLM")


def check_folder(folder: Path, models: Iterable[Path]) -> None:
    """Raise `ConversionError` if the files in a model folder are inconsistent."""
    if (folder / PIPELINE).is_file():
        check_pipeline(folder)
        return
    opened = cache(_opened)
    problems: list[Problem] = [*_missing_parts(folder), *_structure_problems(folder, opened)]
    for model in models:
        if (config := config_of(folder, model)) is not None:
            problems += [one for one in model_problems(model, config, opened) if one not in problems]
    if problems:
        raise ConversionError.of(problems)


def _missing_parts(folder: Path) -> Iterator[Problem]:
    """Yield a problem for each model that belongs to another one in the folder, and each .bin without its model."""
    parts = [(there, other) for pair in _TOGETHER for there, other in (pair, pair[::-1])]
    parts += [(path.name, path.with_suffix(".xml").name) for path in sorted(folder.glob(f"{PREFIX}*.bin"))]
    for there, other in parts:
        if (folder / there).is_file() and not (folder / other).is_file():
            yield _problem(folder, f"it contains {there}, but no {other}", AS_WRITTEN)


def _structure_problems(folder: Path, opened: Callable[[Path], _Interface | None]) -> Iterator[Problem]:
    """Yield a problem for each structure or size of a model that its configuration contradicts."""
    path = folder / CONFIG
    if not path.is_file():
        return
    try:
        config = read_object(path)
    except ConversionError as error:
        yield from error.problems
        return
    inputs, sizes = list[str](), list[Problem]()
    for model, value, names in _SIZES_OF_PAIRS:
        if (folder / model).is_file() and (graph := opened(folder / model)) is not None:
            if model == ENCODER_OF_A_PAIR:
                inputs += graph.inputs
                sizes += _sound_problems(folder, config, graph)
            elif config.get("model_type") == "whisper":
                stated_positions = {_TARGET_POSITIONS: config.get(_TARGET_POSITIONS)}
                sizes += graph.differences(path, folder / model, "decoder.embed_positions.weight", 0, stated_positions)
            stated = {name: config[name] for name in names if name in config}
            sizes += graph.differences(path, folder / model, value, -1, stated)
            sizes += graph.other_type(path, folder / model, config)
    if message := other_structure(folder, config, inputs):
        yield _problem(path, message, _MIXED)
    yield from sizes


def _sound_problems(folder: Path, config: Mapping[str, Any], graph: _Interface) -> Iterator[Problem]:
    """Yield a problem for each size of a Whisper model's features that contradicts the model."""
    if "input_features" not in graph.inputs or (name := "num_mel_bins") not in config:
        return
    path, encoder = folder / CONFIG, folder / ENCODER_OF_A_PAIR
    yield from graph.differences(path, encoder, "last_hidden_state", 1, {_POSITIONS: config.get(_POSITIONS)})
    yield from graph.differences(path, encoder, "input_features", 1, {name: config[name]})
    yield from graph.differences(path, encoder, "conv1.weight", 1, {name: config[name]})
    try:
        stated = processor(folder, "feature_extractor", "audio_processor")
    except ConversionError as error:
        yield from error.problems
        return
    if stated is None:
        return
    for key, wanted in (("feature_size", config[name]), ("nb_max_frames", graph.size("input_features", 2))):
        if (found := stated.values.get(key)) is not None and wanted is not None and found != wanted:
            message = f"its {stated.place}{key} is {shown(found)}, but the model needs {shown(wanted)}"
            yield _problem(stated.path, message, _MIXED)


def check_pipeline(folder: Path) -> None:
    """Raise `ConversionError` with everything that is missing or inconsistent in a diffusion pipeline's folder."""
    index = read_object(folder / PIPELINE)
    problems = [
        _problem(folder / PIPELINE, f"its {name} is {shown(index[name])}; expected a library and a class", AS_WRITTEN)
        for name in (*_COMPONENTS, *_OTHER_COMPONENTS)
        if name in index and not _is_component(index[name])
    ]
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


def model_problems(model: Path, config: Path, opened: Callable[[Path], _Interface | None]) -> list[Problem]:
    """Return the problems of an IR whose numbers of classes or tokens differ from its configuration."""
    try:
        config_values = read_object(config)
    except ConversionError as error:
        return list(error.problems)
    graph = opened(model)
    if graph is None:
        return []
    kinds, labels = config_values.get("architectures") or [], config_values.get("id2label")
    invalid = [
        _invalid(config, name, config_values[name], expected)
        for name, expected, fits in (
            ("architectures", "names of classes", isinstance(kinds, list) and all(isinstance(one, str) for one in kinds)),
            ("id2label", "an object", labels is None or isinstance(labels, dict)),
        )
        if not fits
    ]
    if invalid:
        return invalid
    kind = kinds[0] if kinds else ""
    sizes: dict[str, Any] = {}
    if kind.endswith(_LABELLED):
        stated = next((key for key in _NUMBERS_OF_LABELS if key in config_values), None)
        if isinstance(labels, dict):
            sizes = {"id2label": len(labels)}
        else:
            sizes = {stated: config_values[stated]} if stated else {"num_labels": 2}  # the default of transformers
    elif kind.endswith(_OF_VOCABULARY) and "padded_vocab_size" not in config_values:
        sizes = {"vocab_size": config_values.get("vocab_size")}
    found = list(graph.differences(config, model, "logits", -1, sizes))
    return [*found, *graph.other_type(config, model, config_values)]


class _Interface:
    """The dimensions of a model's inputs and outputs by all of their names, those of its weights by their names in PyTorch,
    and the names of its inputs and layers.
    """

    def __init__(self, path: Path) -> None:
        self._dims: dict[str, Dims | None] = {}
        self.layers: list[str] = []
        self.inputs: list[str] = []
        with format_of(path).open(path, without_weights=True) as source:
            for port in (*source.inputs, *source.outputs):
                self._dims |= dict.fromkeys(port.names, port.dims)
            self.layers += (layer.name for layer in source.layers)
            for layer in source.layers:
                if layer.kind == "constant" and (match := _WEIGHTS.match(layer.name)):
                    self._dims[match[1]] = layer.dims[0]
            self.inputs += (name for port in source.inputs for name in port.names)

    def other_type(self, config: Path, model: Path, config_values: Mapping[str, Any]) -> Iterator[Problem]:
        """Yield a problem if the modules of the layers are those of another type than the configuration states."""
        stated = config_values.get("model_type")
        if modules := modules_of_another_type(stated, self.layers):
            message = f"its model_type is {stated!r}, but the layers of {model.name} have {modules}"
            yield _problem(config, message, _MIXED)

    def size(self, value: str, axis: int) -> int | None:
        """Return the size of an axis of an input or output; ``None`` if it is unknown."""
        dims = self._dims.get(value)
        return dims[axis] if dims and -len(dims) <= axis < len(dims) else None

    def differences(
        self, config: Path, model: Path, value: str, axis: int, config_values: Mapping[str, Any]
    ) -> Iterator[Problem]:
        """Yield a problem if the size of an axis differs from the configuration, which may state it under several names."""
        for key, size in config_values.items():
            if size is not None and not (is_integer(size) and size > 0):
                yield _invalid(config, key, size, "a positive integer")
        if (found := self.size(value, axis)) is None:
            return
        stated = {key: size for key, size in config_values.items() if is_integer(size) and size > 0}
        if stated and found not in stated.values():
            key, size = next(iter(stated.items()))
            message = f"{key} is {size}, but {value} of {model.name} has {found}: they are from different models"
            yield _problem(config, message, _MIXED)


def _opened(model: Path) -> _Interface | None:
    """Return the interface of an IR; ``None`` if it cannot be read, which its conversion reports."""
    try:
        return _Interface(model)
    except ConversionError:
        return None


def _is_named(index: Mapping[str, Any], name: str) -> bool:
    return _is_component(index.get(name)) and None not in index[name]


def _is_component(stated: Any) -> bool:
    """Return whether a value names a library and a class, or is the pair of nulls of a component that is not used."""
    return isinstance(stated, list) and len(stated) == 2 and all(text is None or isinstance(text, str) for text in stated)


def _invalid(config: Path, name: str, value: object, expected: str) -> Problem:
    return _problem(config, f"its {name} is {shown(value)}; expected {expected}", f"use the {config.name} of the model")


def _problem(path: Path, message: str, remedy: str) -> Problem:
    return Problem(message, str(path), remedy=remedy, fault=Fault.MALFORMED)
