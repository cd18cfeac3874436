"""Several samples through several runtimes, each of which starts once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from converters.inference_engine.baseline import EngineProcess, python, weights_of_old_ir
from converters.validation.compare import Comparison, Tolerance, compare
from converters.validation.excuse import excused
from converters.validation.onnx_model import OnnxModel
from converters.validation.openvino_inference import EXACT, SHIPPED
from converters.validation.openvino_inference import infer as infer_openvino
from converters.validation.openvino_process import OpenVINOError, OpenVINOProcess
from converters.validation.runtimes import NAMES, OPENVINO, Arrays, runner, unavailable


@dataclass
class Sampled:
    """What became of several samples.

    Attributes:
        names: the samples.
        comparisons: of each runtime that ran, the baseline aside, for each output its comparison of each sample.
    """

    names: list[str]
    comparisons: dict[str, dict[str, list[Comparison]]] = field(default_factory=dict)

    def apart(self) -> dict[str, list[str]]:
        """The samples where a runtime differs, and which runtimes."""
        found: dict[str, list[str]] = {}
        for runtime, outputs in self.comparisons.items():
            for rows in outputs.values():
                for name, row in zip(self.names, rows, strict=True):
                    if not row.agrees and runtime not in found.setdefault(name, []):
                        found[name].append(runtime)
        return {name: found[name] for name in self.names if found.get(name)}

    def worst(self, runtime: str, output: str) -> Comparison | None:
        """The comparison of the sample where an output is farthest from what it should be."""
        rows = self.comparisons.get(runtime, {}).get(output, [])
        return max(rows, key=lambda row: (not row.agrees, row.relative_l2 or 0.0, 1 - row.exact), default=None)


def compare_samples(
    path: Path,
    file: Path,
    model: OnnxModel,
    samples: Mapping[str, Arrays],
    runtimes: Sequence[str],
    tolerance: Tolerance,
    extensions: Sequence[str] = (),
    progress: Callable[[str, int, int], None] = lambda step, done, total: None,
) -> Sampled:
    """Run all samples through each runtime; one that fails has no comparisons, and shows why when it runs alone.

    Args:
        path: the IR.
        file: its conversion.
        model: what is known of that.
        samples: the inputs of each sample by name.
        runtimes: the runtimes, the baseline first.
        tolerance: how far floats may part.
        extensions: of OpenVINO.
        progress: called with each step's name, how many samples are done and how many there are.
    """
    sampled = Sampled(list(samples))
    baseline = ""
    expected: list[list[np.ndarray]] = []
    low: list[list[np.ndarray]] = []
    itself: list[list[Comparison]] = []  # of each sample, OpenVINO in low precision with itself
    for runtime in runtimes:
        progress(NAMES[runtime], 0, len(samples))
        found: list[list[np.ndarray]] = []
        try:
            if runtime == OPENVINO:
                found = _baseline(path, model, samples, extensions)
            elif not unavailable(runtime, bool(model.custom), model.without_body):
                run = runner(runtime, file, model.outputs)
                for place, arrays in enumerate(samples.values()):
                    found.append(list(run(arrays).values()))
                    progress(NAMES[runtime], place + 1, len(samples))
        except (OpenVINOError, ModuleNotFoundError):
            continue
        except Exception:  # whatever a runtime raises: `validate` tells of it
            continue
        if not found:
            continue
        if not expected:
            baseline, expected = runtime, found
            continue
        parting = sampled.comparisons[runtime] = {
            name: [
                compare(got[place], should[place], tolerance, random=runtime in _BY_BODY and name in model.random)
                for got, should in zip(found, expected, strict=True)
            ]
            for place, name in enumerate(model.outputs)
        }
        if (
            baseline == OPENVINO
            and weights_of_old_ir(path) is None
            and not all(row.agrees for rows in parting.values() for row in rows)
        ):
            if not low:
                low = _openvino(path, samples, extensions, SHIPPED)
                itself = [
                    [compare(less, should, tolerance) for less, should in zip(*sample, strict=True)]
                    for sample in zip(low, expected, strict=True)
                ]
            for place, rows in enumerate(parting.values()):
                rows[:] = [
                    excused(row, parted[place], got[place], less[place], tolerance)
                    for row, parted, got, less in zip(rows, itself, found, low, strict=True)
                ]
    return sampled


def _baseline(
    path: Path, model: OnnxModel, samples: Mapping[str, Arrays], extensions: Sequence[str]
) -> list[list[np.ndarray]]:
    """What OpenVINO gives; of IR 2 to 7, which it does not read, what the Inference Engine gives."""
    weights = weights_of_old_ir(path)
    if weights is None:
        return _openvino(path, samples, extensions, EXACT)
    executable = python()
    if executable is None:
        return []
    with EngineProcess(executable) as engine:
        found = [engine.run(path, weights, arrays) for arrays in samples.values()]
    return [[outputs[name] for name in model.outputs] for outputs in found]


def _openvino(
    path: Path, samples: Mapping[str, Arrays], extensions: Sequence[str], settings: Mapping[str, str]
) -> list[list[np.ndarray]]:
    runs = [list(arrays.values()) for arrays in samples.values()]
    with OpenVINOProcess() as process:
        return process.ask(infer_openvino, str(path), runs, extensions=list(extensions), settings=dict(settings)).outputs


_BY_BODY = ("none", "reference")
