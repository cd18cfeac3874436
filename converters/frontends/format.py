"""TensorFlow, TensorFlow Lite, PaddlePaddle, PyTorch and ONNX as source formats, through OpenVINO's frontends.

OpenVINO reads the model in a separate process and saves it as a temporary IR, which is then converted like any other.
"""

from __future__ import annotations

import shutil
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from converters.errors import ConversionError, Fault, Problem
from converters.frontends.saved_model import DEFAULT, signatures, write_only

if TYPE_CHECKING:
    from converters.inspection import Inspection
    from converters.openvino.source import OpenVINOSource

_NAMES = {
    ".tflite": "TensorFlow Lite",
    ".pb": "TensorFlow",
    ".meta": "TensorFlow",
    ".pdmodel": "PaddlePaddle",
    ".json": "PaddlePaddle",
    ".pt2": "PyTorch",
    ".onnx": "ONNX",
    ".gguf": "GGUF",
}
_MARKS = {".tflite": (4, 8, b"TFL3"), ".gguf": (0, 4, b"GGUF"), ".json": (0, 256, b'"pir"')}
"""The marks of these formats: suffix -> the bytes between two positions of a file."""
_REMEDIES = {
    ".json": "export it as a .pdmodel: set FLAGS_enable_pir_api=0 before paddle.jit.save",
    ".gguf": "export the original model with optimum-intel, or use a release of OpenVINO that reads GGUF",
}
_SAVED_MODEL = ("saved_model.pb", "saved_model.pbtxt")


def framework_of(path: Path) -> str | None:
    """Return the framework of a file or a SavedModel's folder, by its name and first bytes."""
    if path.is_dir():
        return "TensorFlow" if any((path / name).is_file() for name in _SAVED_MODEL) else None
    if not path.is_file():
        return None
    suffix = path.suffix.lower()
    if suffix in _MARKS:
        first, last, mark = _MARKS[suffix]
        with path.open("rb") as file:
            return _NAMES[suffix] if mark in file.read(last)[first:] else None
    if suffix == ".pt2":
        return _NAMES[suffix] if zipfile.is_zipfile(path) else None
    return _NAMES.get(suffix)


class FrontendFormat:
    """The formats of OpenVINO's frontends; see `converters.source.Format`."""

    name = "TensorFlow, TensorFlow Lite, PaddlePaddle, PyTorch and ONNX models"
    suffixes = (".tflite", ".pdmodel", ".pt2")

    def load(self) -> None:
        """Register the rules of OpenVINO's operations."""
        from converters.openvino import walk  # noqa: F401

    def recognizes(self, model: object) -> bool:
        """Return whether a path is a model of one of the frameworks."""
        if not isinstance(model, (str, Path)):
            return False
        try:
            return framework_of(Path(model)) is not None
        except (OSError, ValueError):
            return False

    @contextmanager
    def open(
        self,
        model: str | Path,
        bin: str | Path | bytes | None = None,
        *,
        without_weights: bool = False,
        signature: str | None = None,
    ) -> Iterator[OpenVINOSource]:
        """Open the typed graph of the IR that OpenVINO makes of the model.

        A SavedModel with several signatures needs one of them, unless one is ``serving_default``.

        Raises:
            ModuleNotFoundError: OpenVINO is not installed.
            ConversionError: OpenVINO cannot read the model.
            ValueError: a .bin is given.
        """
        from converters.frontends.source import FrontendSource
        from converters.openvino.reader.read import read

        path = Path(model)
        with _imported(path, bin, signature) as xml:
            yield FrontendSource(read(xml, name=str(path)), path, xml)

    def inspect(self, path: Path, bin: str | Path | None = None, *, signature: str | None = None) -> Inspection:
        """See `converters.openvino.inspection.inspect`."""
        from dataclasses import replace

        from converters.openvino.inspection import inspect

        with _imported(path, bin, signature) as xml:
            return replace(inspect(xml, name=str(path)), files=[path])

    def signatures(self, path: Path) -> list[str]:
        """Return the names of a SavedModel's signatures; empty for other models."""
        return signatures(path) if path.is_dir() else []

    def coverage(self) -> None:
        """Return ``None``, because the operations are OpenVINO's."""
        return None


@contextmanager
def _imported(path: Path, bin: str | Path | bytes | None, signature: str | None = None) -> Iterator[Path]:
    """Yield the temporary .xml that OpenVINO saves for a model, which has no .bin."""
    from converters.frontends.reading import save_as_ir
    from converters.openvino.runtime.process import OpenVINOError, OpenVINOProcess

    if bin is not None:
        raise ValueError(f"a .bin belongs to an .xml, not to {path}")
    with tempfile.TemporaryDirectory(prefix="specops-") as folder:
        xml = Path(folder) / "model.xml"
        chosen = _with_signature(path, signature, Path(folder))
        try:
            with OpenVINOProcess() as process:
                process.ask(save_as_ir, str(chosen), str(xml))
        except OpenVINOError as error:
            told = f"OpenVINO's frontend for {framework_of(path)} cannot read it: {_first_cause(str(error))}"
            remedy = _REMEDIES.get(path.suffix.lower(), "check that OpenVINO's converter, ovc, accepts it")
            raise ConversionError.of(Problem(told, str(path), remedy=remedy, fault=Fault.UNSUPPORTED)) from error
        yield xml


def _with_signature(path: Path, signature: str | None, folder: Path) -> Path:
    """Return the model to read: a copy in a folder if a signature other than the default one is chosen."""
    if not path.is_dir():
        if signature is not None:
            raise ValueError(f"a signature belongs to a TensorFlow SavedModel, not to {path}")
        return path
    try:
        names = signatures(path)
        if signature is None and (len(names) < 2 or DEFAULT in names):
            return path
        if signature not in names:
            message = "it has no signatures"
            if names:
                fault = f"it has no signature {signature!r}; expected one of" if signature else "it has several signatures:"
                message = f"{fault} {', '.join(names)}"
            remedy = "select one with --signature (signature= in Python)"
            raise ConversionError.of(Problem(message, str(path), remedy=remedy, fault=Fault.UNSUPPORTED))
        if signature == DEFAULT:
            return path
        write_only(path, signature, folder / "model")
    except ValueError as error:
        if isinstance(error, ConversionError):
            raise
        remedy = "save it again with tf.saved_model.save"
        raise ConversionError.of(Problem(str(error), str(path), remedy=remedy, fault=Fault.MALFORMED)) from error
    return folder / "model"


def _first_cause(text: str) -> str:
    """Return the line of OpenVINO's message with the cause: the last one that is not a position in its sources."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    causes = [line for line in lines if not line.startswith(("Exception from", "Check '", "While validating", "[ERROR]"))]
    return (causes or lines or ["OpenVINO gives no reason"])[-1 if causes else 0]


def copied(xml: Path, folder: Path) -> Path:
    """Copy the IR's files to another folder, and return the new .xml."""
    for file in (xml, xml.with_suffix(".bin")):
        if file.exists():
            shutil.copyfile(file, folder / file.name)
    return folder / xml.name


FORMAT = FrontendFormat()
