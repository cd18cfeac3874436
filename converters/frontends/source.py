"""A model of another framework as a source: the IR that OpenVINO creates, with the name of the model's file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import onnx_ir as ir

from converters.frontends.associated_files import associated_texts
from converters.frontends.format import copied
from converters.openvino.baseline import OpenVINOBaseline
from converters.openvino.reader.graph import Model
from converters.openvino.source import OpenVINOSource
from converters.saving import Source as SavedSource
from converters.source import Baseline
from converters.validation.onnx_model import files_of


class FrontendSource(OpenVINOSource):
    """A model of another framework; see `converters.source.Source`.

    Args:
        model: the IR's typed graph.
        path: the file or folder of the framework.
        xml: the IR, which is deleted when the source is closed.
    """

    def __init__(self, model: Model, path: Path, xml: Path) -> None:
        super().__init__(model, in_memory=True)
        self._origin, self._xml = path, xml

    @property
    def files(self) -> tuple[Path, ...]:
        """The framework's file, or the files of its folder; for an ONNX model also its files of weights."""
        if self._origin.is_dir():
            return tuple(sorted(self._origin.rglob("*")))
        return tuple(files_of(self._origin)) if self._origin.suffix.lower() == ".onnx" else (self._origin,)

    def describe(self, model: ir.Model, *, values: bool = True) -> None:
        """Add the source's information to the model, and the texts that are associated with a model of TensorFlow Lite."""
        super().describe(model, values=values)
        if self._origin.suffix.lower() == ".tflite":
            model.metadata_props.update(associated_texts(self._origin))

    def weights(self, *, unchanged: bool) -> SavedSource:
        """Return weights without a file to refer to, because the IR is temporary."""
        return replace(super().weights(unchanged=unchanged), files=self.files)

    def baseline(self, folder: Path, extensions: Sequence[str] = ()) -> Baseline:
        """Return OpenVINO's CPU plugin with the IR."""
        return OpenVINOBaseline(copied(self._xml, folder), None, self._requested(), folder, extensions)
