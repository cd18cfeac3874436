"""OpenVINO's CPU plugin as the baseline of an IR."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from converters.openvino.runtime import inference, times
from converters.openvino.runtime.extraction import Output, extract
from converters.openvino.runtime.inference import EXACT, SHIPPED
from converters.openvino.runtime.process import OpenVINOError, OpenVINOProcess, run_openvino
from converters.source import Executed, Inference, LayerOutput

# The types whose names in OpenVINO differ from those in files.
_TYPE_NAMES = {"ReLU": "Relu", "SoftMax": "Softmax", "PReLU": "PRelu"}


@dataclass(frozen=True)
class RequestedInterface:
    """The requested inputs and outputs of a conversion.

    Attributes:
        inputs: the positions in the file of the remaining inputs.
        outputs: for each output, the name of its layer, its index, and its position among the file's outputs, if any.
        variables: the ids of the assigned variables.
    """

    inputs: list[int]
    outputs: list[tuple[str, int, int | None]]
    variables: list[str]


class OpenVINOBaseline:
    """OpenVINO on the CPU, in float32; see `converters.source.Baseline`.

    Args:
        path: the .xml.
        bin: the .bin, if it is not the one next to the .xml.
        wanted: the requested inputs and outputs, if they are not the file's.
        folder: a folder for files.
        extensions: see `converters.openvino.runtime.extensions.new_core`.
    """

    runtime = "openvino"
    title = "OpenVINO, CPU"
    has_low_precision = True

    def __init__(
        self, path: Path, bin: Path | None, wanted: RequestedInterface | None, folder: Path, extensions: Sequence[str] = ()
    ) -> None:
        self._extensions = list(extensions)
        self._path = path if bin is None else _adjacent_copies(path, bin, folder / "ir")
        if wanted is not None:
            outputs = [Output(*output) for output in wanted.outputs]
            try:
                with OpenVINOProcess() as process:
                    asked = (str(self._path), str(folder / "chosen.xml"), wanted.inputs, outputs, wanted.variables)
                    process.ask(extract, *asked, self._extensions)
                self._path = folder / "chosen.xml"
            except (OpenVINOError, ModuleNotFoundError):  # reported when this runtime runs
                return

    def run(
        self, inputs: Sequence[np.ndarray], layers: Sequence[LayerOutput] = (), *, low_precision: bool = False
    ) -> Inference:
        """See `converters.openvino.runtime.process.run_openvino`."""
        names = [
            inference.LayerOutput(one.layer.name, _TYPE_NAMES.get(one.layer.type, one.layer.type), one.index)
            for one in layers
        ]
        settings = _settings(low_precision)
        return run_openvino(self._path, list(inputs), names, extensions=self._extensions, settings=settings)

    def run_all(self, samples: Sequence[Sequence[np.ndarray]], *, low_precision: bool = False) -> list[list[np.ndarray]]:
        """Return the outputs of each sample."""
        options = {"extensions": self._extensions, "settings": dict(_settings(low_precision))}
        with OpenVINOProcess() as process:
            runs = [list(arrays) for arrays in samples]
            return process.ask(inference.infer, str(self._path), runs, **options).outputs

    def times(self, inputs: Sequence[np.ndarray]) -> tuple[float, list[Executed]]:
        """See `converters.openvino.runtime.times.measure`."""
        with OpenVINOProcess() as process:
            return process.ask(times.measure, str(self._path), list(inputs), self._extensions)


def _settings(low_precision: bool) -> Mapping[str, str]:
    return SHIPPED if low_precision else EXACT


def _adjacent_copies(xml: Path, weights: Path, folder: Path) -> Path:
    """Put an IR's files next to each other in a new folder, where OpenVINO finds them. Return the .xml."""
    folder.mkdir()
    for file, name in ((xml, "model.xml"), (weights, "model.bin")):
        try:
            (folder / name).symlink_to(file.resolve())
        except OSError:  # the system or the file system does not support links
            shutil.copyfile(file, folder / name)
    return folder / "model.xml"
