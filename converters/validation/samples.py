"""Comparison of several samples in several runtimes, each with one session."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np

from converters.source import Baseline, BaselineError
from converters.validation.compare import Comparison, Tolerance, compare
from converters.validation.excuse import distances, excused
from converters.validation.onnx_model import OnnxModel
from converters.validation.runtimes import BY_BODY, NAMES, Arrays, runner, unavailable
from converters.validation.selections import Selections


@dataclass
class Sampled:
    """The results for several samples.

    Attributes:
        names: the samples.
        comparisons: runtime other than the baseline -> output -> the comparison of each sample.
    """

    names: list[str]
    comparisons: dict[str, dict[str, list[Comparison]]] = field(default_factory=dict)

    def apart(self) -> dict[str, list[str]]:
        """Return the samples that differ, with the runtimes."""
        found: dict[str, list[str]] = {}
        for runtime, outputs in self.comparisons.items():
            for rows in outputs.values():
                for name, row in zip(self.names, rows, strict=True):
                    if not row.agrees and runtime not in found.setdefault(name, []):
                        found[name].append(runtime)
        return {name: found[name] for name in self.names if found.get(name)}

    def worst(self, runtime: str, output: str) -> Comparison | None:
        """Return the comparison of the sample with the largest difference of an output."""
        rows = self.comparisons.get(runtime, {}).get(output, [])
        return max(rows, key=lambda row: (not row.agrees, row.relative_l2 or 0.0, 1 - row.exact), default=None)


def compare_samples(
    source: Baseline,
    file: Path,
    model: OnnxModel,
    samples: Mapping[str, Arrays],
    runtimes: Sequence[str],
    tolerance: Tolerance,
    progress: Callable[[str, int, int], None] = lambda step, done, total: None,
    selections: Selections | None = None,
) -> Sampled:
    """Run all samples in each runtime. A runtime that fails has no comparisons. It reports the reason when it runs alone.

    Args:
        source: the source's runtime, with the source.
        file: its conversion.
        model: the properties of the conversion.
        samples: the inputs of each sample by name.
        runtimes: the runtimes, the baseline first.
        tolerance: the allowed difference of floats.
        progress: receives the name of each step, the number of finished samples and their total.
        selections: decides about differences that a selection causes.
    """
    sampled = Sampled(list(samples))
    inputs = [list(arrays.values()) for arrays in samples.values()]
    baseline = ""
    expected: list[list[np.ndarray]] = []
    low: list[list[np.ndarray]] = []
    # for each sample, the comparison of the source's runtime in low precision with itself
    itself: list[list[Comparison]] = []

    @functools.cache
    def all_moved(sample: int) -> list[float]:
        return distances(source, inputs[sample], expected[sample], tolerance)

    def moved(sample: int, place: int) -> float:
        return all_moved(sample)[place]

    for runtime in runtimes:
        name = source.title if runtime == source.runtime else NAMES[runtime]
        progress(name, 0, len(samples))
        found: list[list[np.ndarray]] = []
        try:
            if runtime == source.runtime:
                found = source.run_all(inputs)
            elif not unavailable(runtime, bool(model.custom), model.without_body):
                run = runner(runtime, file, model.outputs)
                for place, arrays in enumerate(samples.values()):
                    found.append(list(run(arrays).values()))
                    progress(name, place + 1, len(samples))
        except (BaselineError, ModuleNotFoundError):
            continue
        except Exception:  # reported by `validate`
            continue
        if not found:
            continue
        if not expected:
            baseline, expected = runtime, found
            continue
        parting = sampled.comparisons[runtime] = {
            name: [
                compare(got[place], should[place], tolerance, random=runtime in BY_BODY and name in model.random)
                for got, should in zip(found, expected, strict=True)
            ]
            for place, name in enumerate(model.outputs)
        }
        differs = not all(row.agrees for rows in parting.values() for row in rows)
        if differs and baseline == source.runtime and source.has_low_precision:
            if not low:
                low = source.run_all(inputs, low_precision=True)
                itself = [
                    [compare(less, should, tolerance) for less, should in zip(*sample, strict=True)]
                    for sample in zip(low, expected, strict=True)
                ]
            for place, rows in enumerate(parting.values()):
                rows[:] = [
                    excused(row, repeated[place], got[place], less[place], tolerance, partial(moved, sample, place))
                    for sample, (row, repeated, got, less) in enumerate(zip(rows, itself, found, low, strict=True))
                ]
        if selections is not None and baseline == source.runtime:
            for sample, arrays in enumerate(samples.values()):
                judged = selections.judged(runtime, arrays, {name: rows[sample] for name, rows in parting.items()})
                for name, rows in parting.items():
                    rows[sample] = judged[name]
    return sampled
