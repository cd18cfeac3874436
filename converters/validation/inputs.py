"""A model's inputs from files: .npz, .npy, images, and folders of samples."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import onnx

from converters.metadata_keys import LAYOUT
from converters.validation.arrays import InputSpec, check_inputs, ignored_note, load_inputs
from converters.validation.images import SUFFIXES, Preprocessing, layout_of, load_image

if TYPE_CHECKING:
    from converters.source import Source

Arrays = dict[str, np.ndarray]


@dataclass(frozen=True)
class ModelInputs:
    """The inputs of a model.

    Attributes:
        specs: its inputs.
        layouts: index of an input -> its layout, if it is stated.
        information: the model's metadata; nested names are joined by blanks.
    """

    specs: Sequence[InputSpec]
    layouts: Mapping[int, str] = field(default_factory=dict)
    information: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def by_source(cls, source: Source, specs: Sequence[InputSpec]) -> ModelInputs:
        """Return the inputs of a source; ``specs`` are those of its conversion."""
        layouts = {place: port.layout for place, port in enumerate(source.inputs) if port.layout}
        return cls(specs, layouts, source.information)

    @classmethod
    def by_onnx(cls, model: onnx.ModelProto, specs: Sequence[InputSpec]) -> ModelInputs:
        """Return the inputs of an ONNX model with the metadata of conversions."""
        values = {value.name: value for value in model.graph.input}
        told = {
            place: entry.value
            for place, spec in enumerate(specs)
            if spec.name in values
            for entry in values[spec.name].metadata_props
            if entry.key == LAYOUT
        }
        return cls(specs, told, {entry.key: entry.value for entry in model.metadata_props})


def load_samples(path: str | Path, taken: ModelInputs, note: Callable[[str], None] = ignored_note) -> dict[str, Arrays]:
    """Load the samples in a file or a folder, by name.

    A file is one sample: an .npz with the inputs by name, or an .npy or image for a model with one input. A folder with an
    .npy file for each input is one sample, too. In any other folder, each file, and each such folder, is a sample. ``note``
    receives the notes of `check_inputs`.

    Raises:
        ValueError: there are no samples, or one does not fit the model.
        MissingExtraError: there are images, and Pillow is not installed.
    """
    path = Path(path)
    if not path.is_dir() or _is_sample(path, taken):
        return {path.name: _load(path, taken, note)}
    known = {".npy", ".npz", *SUFFIXES}
    entries = sorted(e for e in path.iterdir() if _is_sample(e, taken) or (e.is_file() and e.suffix.lower() in known))
    if not entries:
        raise ValueError(f"{path} contains no samples (.npz, .npy or images)")
    return {entry.name: _load(entry, taken, note) for entry in entries}


def _is_sample(path: Path, taken: ModelInputs) -> bool:
    """Return whether a folder has an array for each input."""
    return path.is_dir() and all((path / f"{spec.name}.npy").is_file() for spec in taken.specs)


def _load(path: Path, taken: ModelInputs, note: Callable[[str], None]) -> Arrays:
    suffix = path.suffix.lower()
    if path.is_dir():
        arrays = {spec.name: _array(path / f"{spec.name}.npy") for spec in taken.specs}
        return check_inputs(arrays, taken.specs, str(path), note)
    if suffix == ".npy":
        if len(taken.specs) != 1:
            names = ", ".join(spec.name for spec in taken.specs)
            raise ValueError(f"{path} is one array, but the model has the inputs {names}: use an .npz")
        return check_inputs({taken.specs[0].name: _array(path)}, taken.specs, str(path), note)
    if suffix not in SUFFIXES:
        return load_inputs(path, taken.specs, note)
    if len(taken.specs) != 1:
        names = ", ".join(spec.name for spec in taken.specs)
        raise ValueError(f"{path} is one image, but the model has the inputs {names}: use an .npz")
    spec, stated = taken.specs[0], taken.layouts.get(0, "")
    layout_of(spec, stated)
    image = load_image(path, spec, stated, Preprocessing.stated(taken.information))
    return check_inputs({spec.name: image}, taken.specs, str(path), note)


def _array(path: Path) -> np.ndarray:
    try:
        array = np.load(path, allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise ValueError(f"{path} is not a readable .npy file: {error}") from None
    if not isinstance(array, np.ndarray):
        raise ValueError(f"{path} is not a readable .npy file")
    return array
