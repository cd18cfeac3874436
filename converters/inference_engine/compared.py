"""The Inference Engine as the baseline of an IR of versions 2 to 7, which OpenVINO cannot read."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from converters.inference_engine.baseline import ENVIRONMENT, EngineProcess, python
from converters.source import BaselineError, Executed, Inference, LayerOutput


class InferenceEngineBaseline:
    """The Inference Engine of 2020 with a model; see `converters.source.Baseline`. It does not expose layers.

    Args:
        path: the .xml.
        weights: the .bin.
        inputs, outputs: the names of the model's inputs and outputs.
    """

    runtime = "inference_engine"
    title = "Inference Engine, CPU"
    has_low_precision = False

    def __init__(self, path: Path, weights: Path, inputs: Sequence[str], outputs: Sequence[str]) -> None:
        self._path, self._weights, self._inputs, self._outputs = path, weights, list(inputs), list(outputs)

    def run(
        self, inputs: Sequence[np.ndarray], layers: Sequence[LayerOutput] = (), *, low_precision: bool = False
    ) -> Inference:
        """Run once, without measuring the time."""
        return Inference(self.run_all([inputs]), [None] * len(layers))

    def run_all(self, samples: Sequence[Sequence[np.ndarray]], *, low_precision: bool = False) -> list[list[np.ndarray]]:
        """Return the outputs of each sample, with the sample's input shapes."""
        executable = python()
        if executable is None:
            raise ModuleNotFoundError(
                f"OpenVINO does not read IR 2 to 7: set {ENVIRONMENT} to the Python of an environment with "
                "opencv-python-inference-engine (docs/old-ir.md)"
            )
        found = []
        with EngineProcess(executable) as engine:
            declared = engine.interface(self._path, self._weights)["inputs"]
            for arrays in samples:
                given = dict(zip(self._inputs, arrays, strict=True))
                shapes = {name: array.shape for name, array in given.items() if array.ndim}
                changed = {name: dims for name, dims in shapes.items() if list(dims) != declared.get(name, list(dims))}
                outputs = engine.run(self._path, self._weights, given, changed)
                if missing := [name for name in self._outputs if name not in outputs]:
                    raise BaselineError(f"the Inference Engine has no output {missing[0]}")
                found.append([outputs[name] for name in self._outputs])
        return found

    def times(self, inputs: Sequence[np.ndarray]) -> tuple[float, list[Executed]]:
        """Raise `BaselineError`."""
        raise BaselineError("no layer was timed: the Inference Engine reported no times")
