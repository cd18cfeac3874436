"""Validation of an IR and its ONNX model across runtimes."""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Literal

import numpy as np

from converters.convert import convert
from converters.formats import open_model
from converters.metadata_keys import INTERFACE, SIGNATURE
from converters.source import Baseline, BaselineError, Layer, LayerOutput, Source
from converters.validation.arrays import check_inputs, guessed_inputs, random_inputs
from converters.validation.compare import DEFAULT, Comparison, Tolerance, compare, in_one_width
from converters.validation.distributions import Distribution, distribution, worst
from converters.validation.excuse import distances, element_changes, excused, excused_elements
from converters.validation.inputs import ModelInputs, load_samples
from converters.validation.interface import check_interface
from converters.validation.nodes import LayerNode, nodes_by_layer
from converters.validation.onnx_model import OnnxModel
from converters.validation.runtimes import BY_BODY, NAMES, Arrays, chosen, run, unavailable
from converters.validation.samples import Sampled, compare_samples
from converters.validation.selections import Selections
from converters.validation.sizes import first_that_runs
from converters.validation.times.measure import Times, measure


@dataclass
class RuntimeResult:
    """The result of one runtime.

    Attributes:
        runtime: ``"openvino"``, ``"native"``, ``"python"``, ``"none"`` or ``"reference"``.
        skipped: the reason if the runtime cannot run here, or is not needed.
        error: its error.
        seconds: the time of one inference, after a warm-up run; the median of several if the layers are timed.
        outputs: output name -> the comparison with the baseline.
    """

    runtime: str
    skipped: str = ""
    error: str = ""
    seconds: float | None = None
    outputs: dict[str, Comparison] = field(default_factory=dict)

    @property
    def agrees(self) -> bool:
        """Whether all outputs agree, or the runtime did not run."""
        return not self.error and all(comparison.agrees for comparison in self.outputs.values())


@dataclass(frozen=True)
class LayerDifference:
    """The comparison of a layer's output with the baseline.

    Attributes:
        runtime: the runtime.
        layer_id, layer_name, layer_type: the layer in the IR.
        line: its line in the .xml.
        output: the index of the output.
        comparison: the difference.
    """

    runtime: str
    layer_id: int
    layer_name: str
    layer_type: str
    line: int
    output: int
    comparison: Comparison


@dataclass
class Validation:
    """The result of `validate`.

    Attributes:
        path: the IR.
        baseline: the runtime that the others are compared with: OpenVINO, or the first one that ran if it did not.
        results: the results of all runtimes, the baseline's first.
        first_differences: with ``per_layer``: for each runtime that differs, the first differing layer in the graph's order.
        layers_compared: with ``per_layer``: the number of compared layer outputs.
        layers: with ``per_layer``: each layer's output in each runtime, in the graph's order, runtime by runtime.
        nodes: with ``per_layer``: the nodes of the conversion, and the layers that they compute.
        worst: with ``per_layer``: the distributions of the values with the largest differences, largest first.
        samples: the samples, if there are several. The comparisons of outputs are the worst of all of them.
        sample: the sample with which layers were compared.
        samples_apart: the samples for which runtimes differ, and these runtimes.
        times: with ``times``: the times of the layers in the source's runtime and in ONNX Runtime.
        guessed: the random inputs with a guessed size, which the model may not support.
        shipped: the comparison of the baseline with OpenVINO in its default low precision, if a runtime differs.
        notes: additional notes, such as inputs that were cast.
        names: the names of the runtimes for users.
    """

    path: Path
    baseline: str
    results: list[RuntimeResult]
    first_differences: list[LayerDifference] = field(default_factory=list)
    layers_compared: int = 0
    guessed: list[str] = field(default_factory=list)
    shipped: RuntimeResult | None = None
    notes: list[str] = field(default_factory=list)
    layers: list[LayerDifference] = field(default_factory=list)
    nodes: list[LayerNode] = field(default_factory=list)
    worst: list[Distribution[LayerDifference]] = field(default_factory=list)
    times: Times | None = None
    samples: list[str] = field(default_factory=list)
    sample: str = ""
    samples_apart: dict[str, list[str]] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=lambda: NAMES)

    @property
    def agrees(self) -> bool:
        """Whether at least two runtimes ran, and none failed or differs in an output. Layers do not count."""
        ran = [result for result in self.results if not result.skipped]
        return len(ran) > 1 and all(result.agrees for result in ran)


@dataclass(frozen=True)
class _Exposed:
    """A layer's output that the ONNX model computes as ``value``."""

    output: LayerOutput
    value: str

    @property
    def layer(self) -> Layer:
        return self.output.layer

    @property
    def index(self) -> int:
        return self.output.index


def validate(
    model_path: str | Path,
    onnx_path: str | Path | None = None,
    *,
    bin: str | Path | None = None,
    inputs: str | Path | Mapping[str, np.ndarray] | None = None,
    seed: int = 0,
    shapes: Mapping[str, Sequence[int]] | None = None,
    tolerance: Tolerance = DEFAULT,
    per_layer: bool = False,
    times: bool = False,
    runtimes: Sequence[str] = tuple(NAMES),
    extensions: Sequence[str] = (),
    progress: Callable[..., None] = lambda step, done=0, total=0: None,
) -> Validation:
    """Run the same inputs in all installed runtimes and compare the outputs.

    Stateful models start from their initial state in every runtime.

    The expected values are OpenVINO's in float32 (`EXACT`). If a runtime differs, OpenVINO also runs with its default
    settings (`SHIPPED`), where it computes quantized layers in integers. If that changes an output, other runtimes may
    differ as much from the expected values, or as much as OpenVINO does for slightly changed inputs. Elements may differ as
    much as OpenVINO's do for other last digits of the inputs; see `converters.validation.excuse`. A runtime may also differ
    where a selection decides a tie, if it agrees when each selection receives OpenVINO's values; see
    `converters.validation.selections`.

    Args:
        model_path: the IR's .xml.
        onnx_path: its conversion; ``None`` converts the IR.
        bin: the IR's weights; by default the .bin of the same name next to the .xml.
        inputs: arrays by input name, or a file or folder for `converters.validation.inputs.load_samples`; by default
            ``inputs.npz`` next to the .xml, otherwise random inputs.
        seed: the seed of random inputs.
        shapes: the shapes of random inputs by name. Other dynamic dimensions get the size 2, or the first of
            `converters.validation.sizes.candidates` with which OpenVINO runs the model.
        tolerance: the allowed difference of floats.
        per_layer: whether to compare every layer's output, and find the first that differs.
        times: whether to measure the time of each layer.
        runtimes: the runtimes to run, of ``"openvino"``, ``"native"``, ``"python"``, ``"none"``, ``"reference"``. The first
            represents the source's own runtime.
        extensions: the extensions that OpenVINO needs for the model: shared libraries, and Python files with classes derived
            from ``openvino.Op``.
        progress: receives the name of each step and, for several samples, the number of finished ones and their total.

    Raises:
        ConversionError: the IR cannot be converted.
        ValueError: the inputs or the ONNX model do not fit the IR.
    """
    if unknown := set(runtimes) - set(NAMES):
        raise ValueError(f"{sorted(unknown)[0]!r} is not one of the runtimes {', '.join(NAMES)}")
    path = Path(model_path)
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="specops-")))
        given = None if onnx_path is None else OnnxModel.load(Path(onnx_path))
        signature = None if given is None else _metadata(given).get(SIGNATURE)
        source = stack.enter_context(open_model(path, bin, signature))
        progress("converting")
        target = folder / "model.onnx" if onnx_path is None else Path(onnx_path)
        names_of_values: dict[tuple[int, int], str] = {}
        if onnx_path is None or per_layer or times:
            converted = convert(path, target if onnx_path is None else None, bin=bin, signature=signature)
            names_of_values = converted.report.values
        model = OnnxModel.load(target) if given is None else given
        # The selected inputs and outputs of the conversion also apply to the source.
        if (interface := _metadata(model).get(INTERFACE)) is not None:
            source.restore(interface)
        baseline = source.baseline(folder, extensions)
        notes = check_interface(source, model)
        samples, guessed = _inputs(inputs, source, model, seed, shapes, notes.append)
        sampled, (name, arrays) = None, next(iter(samples.items()))
        taking_part, names = chosen(runtimes, baseline.runtime), {**NAMES, baseline.runtime: baseline.title}

        @functools.cache
        def layers() -> dict[str, LayerOutput]:
            names = names_of_values or convert(path, None, bin=bin, signature=signature).report.values
            return {one.value: one.output for one in reversed(_exposed(source, names, model))}

        selections = stack.enter_context(closing(Selections(layers, baseline, model, folder, tolerance)))
        if len(samples) > 1:
            sampled = compare_samples(baseline, target, model, samples, taking_part, tolerance, progress, selections)
            # Examine a sample for which runtimes differ.
            name = next(iter(sampled.apart()), name)
            arrays = samples[name]
        exposed = _exposed(source, names_of_values, model) if per_layer else []
        file = model.with_outputs([layer.value for layer in exposed], folder) if exposed else target
        outcomes: dict[str, tuple[RuntimeResult, Arrays]] = {}
        try:
            for runtime in taking_part:
                progress(names[runtime])
                if runtime != baseline.runtime:
                    outcomes[runtime] = _onnx(runtime, model, file, arrays, exposed, notes)
                    continue
                outcomes[runtime] = _baseline(baseline, arrays, model, exposed)
                if guessed and not _computes(*outcomes[runtime]):
                    sizes = first_that_runs(model.inputs, shapes or {}, partial(_runs, baseline, model, seed, shapes or {}))
                    if sizes is not None:
                        arrays = random_inputs(model.inputs, seed, {**(shapes or {}), **sizes})
                        outcomes[runtime] = _baseline(baseline, arrays, model, exposed)
                        notes += [
                            f"{name} has the shape {dims}: {baseline.title.partition(',')[0]} fails with smaller shapes"
                            for name, dims in sizes.items()
                        ]
        finally:
            if file != target:
                file.unlink()
        validation = _compared(path, model, exposed, outcomes, tolerance, baseline.runtime)
        validation.names = names
        validation.guessed, validation.notes = guessed, [*notes, *validation.notes]
        if exposed:
            validation.nodes = _nodes(model, exposed)
        ran_itself = bool(outcomes.get(baseline.runtime, (None, {}))[1])
        if ran_itself and not all(result.agrees for result in validation.results):
            values = {runtime: arrays for runtime, (_, arrays) in outcomes.items()}
            changed = _Moved(baseline, arrays, model, values[baseline.runtime], tolerance)
            if baseline.has_low_precision:
                progress(f"{baseline.title}, in low precision")
                _excuse(validation, values, _baseline(baseline, arrays, model, [], low_precision=True), tolerance, changed)
            _excuse_elements(validation, values, tolerance, changed)
        if ran_itself:
            for result in validation.results:
                if not result.agrees and not result.error and result.runtime != baseline.runtime:
                    progress("selections")
                    result.outputs = selections.judged(result.runtime, arrays, result.outputs)
        if sampled is not None:
            _of_samples(validation, sampled, name)
        ran = [kernels for kernels in _KERNELS if kernels in outcomes and outcomes[kernels][1]]
        if times and ran:
            progress("times of the layers")
            outcomes.clear()
            validation.times = measure(source, baseline, target, names_of_values, arrays, model.outputs, ran[0])
            # Report the same time everywhere: the median of several runs if there is one.
            medians = {baseline.runtime: validation.times.baseline, ran[0]: validation.times.onnxruntime}
            for result in validation.results:
                result.seconds = medians.get(result.runtime) or result.seconds
    return validation


def _of_samples(validation: Validation, sampled: Sampled, name: str) -> None:
    """Replace the comparisons of the examined sample by the worst of all samples."""
    validation.samples, validation.sample, validation.samples_apart = sampled.names, name, sampled.apart()
    for result in validation.results:
        for output in result.outputs:
            result.outputs[output] = sampled.worst(result.runtime, output) or result.outputs[output]


def _runs(
    baseline: Baseline,
    model: OnnxModel,
    seed: int,
    given: Mapping[str, Sequence[int]],
    found: Mapping[str, Sequence[int]],
) -> bool:
    """Return whether the source's runtime runs the model with random inputs of such shapes."""
    return _computes(*_baseline(baseline, random_inputs(model.inputs, seed, {**given, **found}), model, []))


def _computes(result: RuntimeResult, outputs: Arrays) -> bool:
    """Return whether a runtime computes any element.

    With an image smaller than a kernel, OpenVINO fails, or returns outputs without elements if it has a single thread.
    """
    return not result.error and any(array.size for array in outputs.values())


def _baseline(
    baseline: Baseline, arrays: Arrays, model: OnnxModel, exposed: list[_Exposed], *, low_precision: bool = False
) -> tuple[RuntimeResult, Arrays]:
    result = RuntimeResult(baseline.runtime)
    layers = [one.output for one in exposed]
    try:
        inference = baseline.run(list(arrays.values()), layers, low_precision=low_precision)
    except ModuleNotFoundError as error:
        result.skipped = str(error)
        return result, {}
    except BaselineError as error:
        result.error = str(error)
        return result, {}
    result.seconds = inference.seconds or None
    values = {e.value: value for e, value in zip(exposed, inference.layers, strict=True) if value is not None}
    return result, values | dict(zip(model.outputs, inference.outputs[0], strict=True))


def _onnx(
    runtime: str, model: OnnxModel, file: Path, arrays: Arrays, exposed: list[_Exposed], notes: list[str]
) -> tuple[RuntimeResult, Arrays]:
    """Return the outputs of the unchanged model, and the layers' values from the model in ``file``."""
    result = RuntimeResult(runtime, skipped=unavailable(runtime, bool(model.custom), model.without_body))
    if result.skipped:
        return result, {}
    try:
        values, result.seconds = run(runtime, model.path, arrays, model.outputs)
    except NotImplementedError as error:
        result.skipped = f"it lacks an operator: {_one_line(error)}"
        return result, {}
    except Exception as error:  # any exception of the runtime is its result
        result.error = f"{type(error).__name__}: {_one_line(error)}"
        return result, {}
    if exposed:
        try:
            layers, _ = run(runtime, file, arrays, list(dict.fromkeys(layer.value for layer in exposed)), timed=False)
        except Exception as error:  # the outputs are valid nevertheless
            notes.append(f"{NAMES[runtime]} cannot return the outputs of layers: {type(error).__name__}: {_one_line(error)}")
        else:
            values = layers | values
    return result, values


@dataclass(frozen=True)
class _Moved:
    """The change of each output of the source's runtime for slightly changed inputs, computed on demand."""

    baseline: Baseline
    inputs: Arrays
    model: OnnxModel
    exact: Arrays
    tolerance: Tolerance

    @functools.cached_property
    def by_name(self) -> dict[str, float]:
        """The relative L2 distances."""
        try:
            moved = distances(self.baseline, list(self.inputs.values()), self._exact, self.tolerance)
        except BaselineError:
            return {}
        return dict(zip(self.model.outputs, moved, strict=True))

    @functools.cached_property
    def elements(self) -> dict[str, np.ndarray | None]:
        """The changes of each element, if the inputs change in their last digits."""
        try:
            moved = element_changes(self.baseline, list(self.inputs.values()), self._exact)
        except BaselineError:
            return {}
        return dict(zip(self.model.outputs, moved, strict=True))

    @property
    def _exact(self) -> list[np.ndarray]:
        return [self.exact[name] for name in self.model.outputs]


def _excuse(
    validation: Validation,
    values: Mapping[str, Arrays],
    shipped: tuple[RuntimeResult, Arrays],
    tolerance: Tolerance,
    moved: _Moved,
) -> None:
    """Accept outputs that differ from OpenVINO's by no more than OpenVINO's own results do with other rounding."""
    result, low = shipped
    exact = values[result.runtime]
    result.outputs = {name: compare(value, exact[name], tolerance) for name, value in low.items()}
    if all(comparison.exact == 1.0 for comparison in result.outputs.values()):
        return  # nothing is quantized
    validation.shipped = result
    for other in validation.results:
        for name, found in other.outputs.items():
            if name in low:
                value = values[other.runtime][name]
                changed = partial(_moved, moved, name)
                other.outputs[name] = excused(found, result.outputs[name], value, low[name], tolerance, changed)


def _moved(moved: _Moved, name: str) -> float:
    return moved.by_name.get(name, 0.0)


def _excuse_elements(validation: Validation, values: Mapping[str, Arrays], tolerance: Tolerance, moved: _Moved) -> None:
    """Accept outputs whose elements differ by no more than OpenVINO's own do if the last digits of the inputs change."""
    for other in validation.results:
        for name, found in other.outputs.items():
            if name in moved.exact and name in values[other.runtime]:
                changes = partial(_changed_elements, moved, name)
                value, exact = values[other.runtime][name], moved.exact[name]
                other.outputs[name] = excused_elements(found, value, exact, tolerance, changes)


def _changed_elements(moved: _Moved, name: str) -> np.ndarray | None:
    return moved.elements.get(name)


def _compared(
    path: Path,
    model: OnnxModel,
    exposed: list[_Exposed],
    outcomes: Mapping[str, tuple[RuntimeResult, Arrays]],
    tolerance: Tolerance,
    source: str,
) -> Validation:
    ran = [runtime for runtime, (_, values) in outcomes.items() if values]
    baseline = ran[0] if ran else source
    expected = outcomes[baseline][1] if ran else {}
    validation = Validation(path, baseline, [result for result, _ in outcomes.values()])
    compared: set[tuple[int, int]] = set()
    for runtime, (result, values) in outcomes.items():
        # Bodies draw different random numbers from OpenVINO and the kernels, and in each run.
        by_body = {runtime, baseline} & BY_BODY and runtime != baseline
        random = model.random if by_body else frozenset()
        for name in model.outputs:
            if name in values and name in expected:
                result.outputs[name] = compare(values[name], expected[name], tolerance, random=name in random)
        if runtime == baseline:
            continue
        rows = [
            _layer_difference(runtime, layer, values[layer.value], expected[layer.value], tolerance, layer.value in random)
            for layer in exposed
            if layer.value in values and layer.value in expected
        ]
        compared.update((row.layer_id, row.output) for row in rows)
        validation.first_differences += [row for row in rows if not row.comparison.agrees][:1]
        validation.layers += rows
    validation.layers_compared = len(compared)
    names = {(layer.layer.id, layer.index): layer.value for layer in exposed}
    for row in worst(validation.layers, lambda row: (row.layer_id, row.output)):
        name = names[row.layer_id, row.output]
        value, should = in_one_width(outcomes[row.runtime][1][name], expected[name])
        validation.worst.append(distribution(row, value, should))
    return validation


def _layer_difference(
    runtime: str, layer: _Exposed, got: np.ndarray, expected: np.ndarray, tolerance: Tolerance, random: bool
) -> LayerDifference:
    found = compare(*in_one_width(got, expected), tolerance, random=random)
    place = layer.layer
    return LayerDifference(runtime, place.id, place.name, place.type, place.line, layer.index, found)


def _metadata(model: OnnxModel) -> dict[str, str]:
    return {entry.key: entry.value for entry in model.proto.metadata_props}


def _inputs(
    inputs: str | Path | Mapping[str, np.ndarray] | None,
    source: Source,
    model: OnnxModel,
    seed: int,
    shapes: Mapping[str, Sequence[int]] | None,
    note: Callable[[str], None],
) -> tuple[dict[str, Arrays], list[str]]:
    """Return the samples as arrays in the order of the model's inputs, and the inputs with guessed shapes."""
    if inputs is not None and shapes:
        raise ValueError("shapes apply to random inputs only, but inputs are given")
    if isinstance(inputs, Mapping):
        return {"": check_inputs(inputs, model.inputs, "the inputs", note)}, []
    beside = source.path.with_name("inputs.npz")
    if inputs is None and not shapes and beside.is_file():
        inputs = beside
    if inputs is not None:
        return load_samples(inputs, ModelInputs.by_source(source, model.inputs), note), []
    return {"": random_inputs(model.inputs, seed, shapes or {})}, guessed_inputs(model.inputs, shapes or {})


# The plugin's kernels, in the order of preference for times.
_KERNELS: tuple[Literal["native", "python", "none"], ...] = ("native", "python", "none")


def _exposed(source: Source, names: Mapping[tuple[int, int], str], model: OnnxModel) -> list[_Exposed]:
    """Return the layers' outputs that the ONNX model contains by name, in the graph's order."""
    known = {name for node in model.proto.graph.node for name in node.output}
    return [
        _Exposed(LayerOutput(layer, index), names[layer.id, index])
        for layer in source.layers
        if layer.kind == "operation"
        for index, has_array in enumerate(layer.has_array)
        if names.get((layer.id, index)) in known and has_array
    ]


def _nodes(model: OnnxModel, exposed: Sequence[_Exposed]) -> list[LayerNode]:
    values: dict[str, list[tuple[int, int]]] = {}
    for one in exposed:
        values.setdefault(one.value, []).append((one.layer.id, one.index))
    return nodes_by_layer(model.proto.graph, values)


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())
