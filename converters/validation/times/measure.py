"""The times of a source's runtime (the baseline) and of ONNX Runtime for the same layers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeVar

import numpy as np

from converters.source import Baseline, BaselineError, Executed, Layer, Source
from converters.validation.times import onnxruntime

_Executed = TypeVar("_Executed", Executed, onnxruntime.Executed)


@dataclass(frozen=True)
class LayerTimes:
    """Layers that one of the two runtimes computes together.

    Attributes:
        layers: the layers, in the graph's order.
        baseline, onnxruntime: the seconds that each runtime needs for them; ``None`` if it executes nothing for them.
        baseline_types, onnxruntime_types: the types of the operations that it executes for them.
    """

    layers: list[Layer]
    baseline: float | None
    onnxruntime: float | None
    baseline_types: list[str]
    onnxruntime_types: list[str]


@dataclass
class Times:
    """The times of a model.

    Attributes:
        kernels: the plugin's kernels that ONNX Runtime ran with: ``"native"``, ``"python"`` or ``"none"``.
        runtime, title: the baseline's key in results, and its name for users.
        baseline, onnxruntime: the median seconds of an inference, without profiling; ``None`` if the runtime did not run.
        layers: the times of the layers, in the graph's order.
        baseline_other, onnxruntime_other: the seconds for operations that the runtime added, such as changes of layout.
        problem: the reason if there are no times for a runtime.
    """

    kernels: str
    runtime: str = "openvino"
    title: str = "OpenVINO"
    baseline: float | None = None
    onnxruntime: float | None = None
    layers: list[LayerTimes] = field(default_factory=list)
    baseline_other: float = 0.0
    onnxruntime_other: float = 0.0
    problem: str = ""


def measure(
    source: Source,
    baseline: Baseline,
    onnx_path: Path,
    names: Mapping[tuple[int, int], str],
    arrays: Mapping[str, np.ndarray],
    outputs: Sequence[str],
    kernels: Literal["native", "python", "none"],
) -> Times:
    """Measure the times of a source and its conversion.

    Args:
        source: the source.
        baseline: its runtime.
        onnx_path: its conversion.
        names: ``(layer id, output index)`` -> the value's name in the conversion.
        arrays: the inputs by name, in the model's order.
        outputs: the conversion's outputs.
        kernels: the plugin's kernels that ONNX Runtime uses.
    """
    times = Times(kernels, baseline.runtime, baseline.title.partition(",")[0])
    theirs: list[Executed] = []
    ours: list[onnxruntime.Executed] = []
    try:
        times.baseline, theirs = baseline.times(list(arrays.values()))
    except (BaselineError, ModuleNotFoundError) as error:
        times.problem = str(error)
    try:
        times.onnxruntime, ours = onnxruntime.measure(onnx_path, arrays, outputs, kernels)
    except Exception as error:  # any exception of the runtime
        times.problem = f"{type(error).__name__}: {error}"
    _by_layer(times, source, names, _within(times.baseline, theirs), _within(times.onnxruntime, ours))
    return times


def _within(whole: float | None, executed: Sequence[_Executed]) -> list[_Executed]:
    """Scale the steps so that their sum does not exceed the time of the inference, because profiling takes time."""
    counted = sum(step.seconds for step in executed)
    factor = min(1.0, whole / counted) if whole and counted else 1.0
    return [step._replace(seconds=step.seconds * factor) for step in executed]


@dataclass
class _Group:
    layers: set[int]
    baseline: list[Executed] = field(default_factory=list)
    onnxruntime: list[onnxruntime.Executed] = field(default_factory=list)


def _by_layer(
    times: Times,
    source: Source,
    names: Mapping[tuple[int, int], str],
    theirs: Sequence[Executed],
    ours: Sequence[onnxruntime.Executed],
) -> None:
    ids = {layer.name: layer.id for layer in source.layers if layer.kind in ("input", "operation")}
    groups = []
    for step in theirs:
        layers = {ids[name] for name in step.layers if name in ids}
        if layers:
            groups.append(_Group(layers, [step]))
        else:
            times.baseline_other += step.seconds
    # A value may be the output of several layers, if all except one have no effect on it.
    holders: dict[str, set[int]] = {}
    for (layer, _), name in names.items():
        holders.setdefault(name, set()).add(layer)
    alive = {layer for node in ours for name in node.outputs for layer in holders.get(name, ())}
    for cluster in onnxruntime.clusters(ours, holders):
        given = {layer for node in cluster for name in node.outputs for layer in holders.get(name, ())}
        if given:
            groups.append(_Group(_needed_by(source, given, alive - given), [], cluster))
        else:
            times.onnxruntime_other += sum(node.seconds for node in cluster)
    order = {layer.id: place for place, layer in enumerate(source.layers)}
    by_id = {layer.id: layer for layer in source.layers}
    merged = sorted(_merged(groups), key=lambda group: min(order[layer] for layer in group.layers))
    for group in merged:
        times.layers.append(
            LayerTimes(
                [by_id[layer] for layer in sorted(group.layers, key=order.__getitem__)],
                sum(step.seconds for step in group.baseline) if group.baseline else None,
                sum(node.seconds for node in group.onnxruntime) if group.onnxruntime else None,
                list(dict.fromkeys(step.type for step in group.baseline)),
                list(dict.fromkeys(node.type for node in group.onnxruntime)),
            )
        )


def _needed_by(source: Source, given: Iterable[int], stop: set[int]) -> set[int]:
    """Return the layers whose outputs are given, and earlier layers whose outputs do not exist in the conversion."""
    by_id = {layer.id: layer for layer in source.layers}
    found: set[int] = set()
    pending = list(given)
    while pending:
        layer = by_id[pending.pop()]
        if layer.id in found or layer.id in stop or layer.kind in ("constant", "input"):
            continue
        found.add(layer.id)
        pending += layer.before
    return found


def _merged(groups: Iterable[_Group]) -> list[_Group]:
    """Merge groups with a common layer."""
    merged: dict[int, _Group] = {}
    for group in groups:
        whole = _Group(set(group.layers), list(group.baseline), list(group.onnxruntime))
        for other in {id(found): found for layer in group.layers if (found := merged.get(layer))}.values():
            whole.layers |= other.layers
            whole.baseline = other.baseline + whole.baseline
            whole.onnxruntime = other.onnxruntime + whole.onnxruntime
        merged |= dict.fromkeys(whole.layers, whole)
    return list({id(group): group for group in merged.values()}.values())
