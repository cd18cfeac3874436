"""A model's inputs, random or from an .npz file, and its outputs as such a file."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import ml_dtypes
import numpy as np

from converters.outputs import Outputs
from converters.suggestions import did_you_mean, similar_file

# The size of a dynamic dimension. With it, random integers are valid indices even of the smallest tables.
DYNAMIC_SIZE = 2
_WORDS = ("apple", "river", "stone", "cloud", "ember", "maple")
_TYPES = {
    "bool": np.dtype(np.bool_),
    "float": np.dtype(np.float32),
    "double": np.dtype(np.float64),
    "float16": np.dtype(np.float16),
    "bfloat16": np.dtype(ml_dtypes.bfloat16),
    "float8e4m3fn": np.dtype(ml_dtypes.float8_e4m3fn),
    "float8e5m2": np.dtype(ml_dtypes.float8_e5m2),
    "int4": np.dtype(ml_dtypes.int4),
    "uint4": np.dtype(ml_dtypes.uint4),
    "string": np.dtype(object),
}


Interval = tuple[int, int | None]
"""The minimum and maximum of a dimension; ``None`` for no maximum."""


def _shown(interval: Interval) -> str:
    low, high = interval
    if low == high:
        return str(low)
    return "?" if interval == (0, None) else f"{low or ''}..{'' if high is None else high}"


def ignored_note(text: str) -> None:
    pass


@dataclass(frozen=True)
class InputSpec:
    """An input of a model.

    Attributes:
        name: its name.
        element_type: its type in ONNX's spelling (``"float"``, ``"int64"``).
        dims: its dimensions, with ``None`` for dynamic ones; ``None`` for an unknown rank.
        bounds: the minimum and maximum of each dimension, if the IR states them; empty otherwise.
    """

    name: str
    element_type: str
    dims: tuple[int | None, ...] | None
    bounds: tuple[Interval, ...] = ()

    @property
    def dtype(self) -> np.dtype:
        """The NumPy type of the input's arrays."""
        return _TYPES.get(self.element_type) or np.dtype(self.element_type)

    @property
    def is_guess(self) -> bool:
        """Whether the size of random inputs is a guess."""
        return self.dims is None or None in self.dims

    @property
    def random_shape(self) -> tuple[int, ...]:
        """A shape that the model supports, as far as it is known."""
        return tuple(
            max(low, DYNAMIC_SIZE if high is None else min(high, DYNAMIC_SIZE)) for low, high in self._intervals or ()
        )

    def check(self, shape: Sequence[int], where: str) -> None:
        """Raise ``ValueError`` for a shape that the model does not support; ``where`` is its origin."""
        intervals = self._intervals
        if intervals is None:
            return
        inside = (
            low <= size and (high is None or size <= high) for size, (low, high) in zip(shape, intervals, strict=False)
        )
        if len(shape) != len(intervals) or not all(inside):
            required = ", ".join(map(_shown, intervals))
            raise ValueError(f"{where}: {self.name} has the shape {list(shape)}, but the model requires [{required}]")

    @property
    def _intervals(self) -> tuple[Interval, ...] | None:
        if self.dims is None:
            return self.bounds or None
        if len(self.bounds) == len(self.dims):
            return self.bounds
        return tuple((0, None) if size is None else (size, size) for size in self.dims)


def session_specs(inputs: Sequence) -> list[InputSpec]:
    """Return the specs of an ``onnxruntime.InferenceSession``'s inputs, which have no bounds and do not distinguish a scalar
    from an unknown rank.
    """
    specs = []
    for value in inputs:
        dims = tuple(d if isinstance(d, int) else None for d in value.shape) if value.shape else None
        specs.append(InputSpec(value.name, value.type.removeprefix("tensor(").removesuffix(")"), dims))
    return specs


def guessed_inputs(specs: Sequence[InputSpec], shapes: Mapping[str, Sequence[int]]) -> list[str]:
    """Return the inputs of which `random_inputs` guesses a dimension."""
    return [spec.name for spec in specs if spec.is_guess and spec.name not in shapes]


def random_inputs(
    specs: Sequence[InputSpec], seed: int = 0, shapes: Mapping[str, Sequence[int]] = MappingProxyType({})
) -> dict[str, np.ndarray]:
    """Return reproducible inputs: floats in [0, 1), integers 0 and 1, words for strings.

    Args:
        specs: the model's inputs.
        seed: the seed.
        shapes: the shapes of inputs by name. Other dynamic dimensions get the size 2, or the nearest supported one.

    Raises:
        ValueError: the model does not support a shape, or does not have an input.
    """
    if unknown := sorted(set(shapes) - {spec.name for spec in specs}):
        names = [spec.name for spec in specs]
        meant = did_you_mean(unknown[0], names)
        known = f"the inputs are {', '.join(names)}" if names else "the model has no inputs"
        raise ValueError(f"there is no input named {unknown[0]}; {known}{f': {meant}' if meant else ''}")
    generator = np.random.default_rng(seed)
    arrays = {}
    for spec in specs:
        shape = tuple(shapes.get(spec.name, spec.random_shape))
        spec.check(shape, "the shapes")
        if spec.element_type == "string":
            array = np.asarray(generator.choice(_WORDS, shape), dtype=object)
        elif spec.element_type == "bool" or "int" in spec.element_type:
            array = np.asarray(generator.integers(0, 2, shape)).astype(spec.dtype)
        else:
            array = np.asarray(generator.random(shape, np.float32)).astype(spec.dtype)
        arrays[spec.name] = array.reshape(shape)
    return arrays


def load_inputs(
    path: str | Path, specs: Sequence[InputSpec], note: Callable[[str], None] = ignored_note
) -> dict[str, np.ndarray]:
    """Load the arrays of an .npz file for the model's inputs, by name, or by position if they have none (``arr_0``, ...).

    Raises:
        ValueError: the file cannot be read, or `check_inputs` fails.
    """
    try:
        file = np.load(path, allow_pickle=False)
        if not isinstance(file, np.lib.npyio.NpzFile):
            raise ValueError("it contains one array without a name")
        with file:
            stored = {name: file[name] for name in file.files}
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        if isinstance(error, OSError) and error.strerror:
            meant = similar_file(Path(path)) if isinstance(error, FileNotFoundError) else ""
            raise ValueError(f"{path} cannot be read: {error.strerror}{f': {meant}' if meant else ''}") from None
        kinds = "inputs are an .npz, an .npy or an image, or a folder of these"
        reason = kinds if "pickled" in str(error) else error
        raise ValueError(f"{path} is not a readable .npz file: {reason}") from None
    names = [spec.name for spec in specs]
    if not set(names) <= set(stored) and len(stored) == len(names) and all(n == f"arr_{i}" for i, n in enumerate(stored)):
        stored = dict(zip(names, stored.values(), strict=True))
    return check_inputs(stored, specs, str(path), note)


def check_inputs(
    arrays: Mapping[str, np.ndarray], specs: Sequence[InputSpec], where: str, note: Callable[[str], None] = ignored_note
) -> dict[str, np.ndarray]:
    """Return the arrays in the order and with the element types of the model's inputs.

    Args:
        arrays: the arrays by input name. Further arrays are ignored.
        specs: the model's inputs.
        where: the origin of the arrays, for errors.
        note: receives a sentence for each array of another type, and for each unused array.

    Raises:
        ValueError: an input is missing, a rank or size is wrong, or the type cannot represent the values.
    """
    if missing := sorted(spec.name for spec in specs if spec.name not in arrays):
        raise ValueError(f"{where}: {', '.join(missing)} missing; the file has {', '.join(arrays) or 'no arrays'}")
    fitted = {}
    for spec in specs:
        array = np.asarray(arrays[spec.name])
        fitted[spec.name] = _fit(array, spec, where)
        if array.dtype.kind in "biuf" and array.dtype != spec.dtype:
            note(f"{spec.name} is {array.dtype} in {where}, and {spec.dtype} for the model")
    for name in arrays.keys() - fitted.keys():
        note(f"{name} in {where} is not one of the model's inputs")
    return fitted


def _fit(array: np.ndarray, spec: InputSpec, where: str) -> np.ndarray:
    spec.check(array.shape, where)
    if spec.element_type == "string":
        if array.dtype.kind not in "USO":
            raise ValueError(f"{where}: {spec.name} contains {array.dtype}, but the model requires strings")
        texts = [e.decode() if isinstance(e, bytes) else str(e) for e in array.reshape(-1).tolist()]
        strings = np.empty(len(texts), object)
        strings[:] = texts
        return strings.reshape(array.shape)
    if array.dtype == spec.dtype:
        return array
    # .npz files keep NumPy's missing types like this
    if spec.dtype.kind == "V" and array.dtype == np.dtype(f"V{spec.dtype.itemsize}"):
        return array.view(spec.dtype)
    converted = None
    if array.dtype.kind in "biuf":
        with np.errstate(all="ignore"):
            converted = array.astype(spec.dtype)
            same = np.array_equal(converted.astype(array.dtype), array, equal_nan=array.dtype.kind == "f")
            # Integers that wrap around convert back to the same number.
            if not same or ((converted < 0) != (array < 0)).any():
                converted = None
    if converted is None:
        message = (
            f"{where}: {spec.name} contains {array.dtype} values that {spec.dtype}, the type of the input, cannot represent"
        )
        if array.dtype.kind == "f" and spec.dtype.kind == "f":
            message += f"; array.astype(np.{spec.dtype}) rounds them"
        raise ValueError(message)
    return converted


def output_files(folder: Path, samples: Iterable[str]) -> list[Path]:
    """Create a folder, and return the file in it for the outputs of each sample.

    Raises:
        ValueError: the folder is a file, or two samples differ only in their suffix.
    """
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder} is a file: the outputs of several samples need a folder")
    files: dict[Path, str] = {}
    for sample in samples:
        other = files.setdefault(folder / f"{Path(sample).stem}.npz", sample)
        if other != sample:
            raise ValueError(f"the outputs of {other} and {sample} would both be written to {Path(sample).stem}.npz")
    folder.mkdir(parents=True, exist_ok=True)
    return list(files)


def write_arrays(path: str | Path, arrays: Mapping[str, np.ndarray], *, inputs: Iterable[Path] = ()) -> None:
    """Write arrays by name as .npz. Strings become NumPy's unicode, and types that NumPy lacks float32.

    Args:
        path: the file; the suffix .npz is not added.
        arrays: the arrays.
        inputs: files that it may not be.

    Raises:
        OSError: the file cannot be written. The previous file is unchanged.
    """
    with (
        Outputs(inputs) as outputs,
        outputs.open(Path(path)) as file,
        zipfile.ZipFile(file, "w", allowZip64=True) as archive,
    ):
        for name, array in arrays.items():
            with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.asanyarray(_storable(array)), allow_pickle=False)


def _storable(array: np.ndarray) -> np.ndarray:
    if array.dtype.kind in "OUS":
        return array.astype(str)
    return array if array.dtype.isbuiltin == 1 else array.astype(np.float32)
