"""The verdict on models that select: detectors, beam searches, quantized networks.

In a selection (TopK, NonMaxSuppression, a comparison, a rounding), the last bit of a float can determine which box or level
is selected. Two runtimes can then return different boxes although both are correct. `Selections` distinguishes such ties
from errors. It passes the values of the source's runtime to every selection, and compares the results of each part of the
model. A TopK may select either of two equal elements. Later parts therefore receive the selection of the source's runtime.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import onnx

from converters.source import Baseline, LayerOutput
from converters.validation.compare import Comparison, Tolerance, compare, in_one_width
from converters.validation.onnx_model import OnnxModel, all_nodes
from converters.validation.runtimes import BY_BODY, Arrays, runner
from onnx_specops.domain import DOMAIN

SAME_SELECTIONS = "agrees if each selection receives the same values: the cause is a tie or a rounding"

_INTEGERS = {getattr(onnx.TensorProto, f"{sign}INT{bits}") for sign in ("", "U") for bits in (4, 8, 16, 32, 64)}
_SELECTING = {
    "": {
        "ArgMax", "ArgMin", "Ceil", "DynamicQuantizeLinear", "Equal", "Floor", "Greater", "GreaterOrEqual", "Hardmax",
        "Less", "LessOrEqual", "Mod", "NonMaxSuppression", "QuantizeLinear", "Round", "Sign", "TopK", "Unique",
    },
    DOMAIN: {
        "DetectionOutput", "ExperimentalDetectronDetectionOutput", "ExperimentalDetectronGenerateProposalsSingleImage",
        "FakeQuantize", "GenerateProposals", "MatrixNms", "MulticlassNms", "NMSRotated", "NonMaxSuppression", "PSROIPooling",
        "Proposal", "QuantizedConv", "ROIPooling", "SearchSorted",
    },
}  # fmt: skip
"""Operators whose result jumps where their input changes a little, by domain; and casts to integers."""


class Selections:
    """Runs a model with the values that the source's runtime computes for its selections.

    Args:
        layers: returns the layers' outputs that the ONNX model computes under a name, by that name.
        baseline: the source's runtime.
        model: the conversion.
        folder: where the changed model is written, if its weights are in its file.
        tolerance: the allowed difference of floats.
    """

    def __init__(
        self,
        layers: Callable[[], Mapping[str, LayerOutput]],
        baseline: Baseline,
        model: OnnxModel,
        folder: Path,
        tolerance: Tolerance,
    ) -> None:
        self._layers, self._baseline, self._model = layers, baseline, model
        self._folder, self._tolerance = folder, tolerance
        self._cut: dict[str, LayerOutput] | None = None
        self._choices: dict[str, Choice] = {}
        self._expected: tuple[Arrays, Arrays, Arrays] | None = None
        self._runners: dict[tuple[str, frozenset[str]], Callable[[Mapping[str, np.ndarray]], Arrays]] = {}

    def judged(self, runtime: str, inputs: Arrays, found: Mapping[str, Comparison]) -> dict[str, Comparison]:
        """Return the comparisons, and accept outputs that differ because a selection chose another one of several equal
        elements.

        The outputs are accepted if all parts of the model agree: every value before a selection, computed from the values
        before earlier selections, and every output, computed from the values before the last ones.

        Args:
            runtime: the runtime of the conversion.
            inputs: the inputs.
            found: output name -> its comparison.
        """
        comparisons = dict(found)
        if all(comparison.agrees for comparison in found.values()) or not self._cuts():
            return comparisons
        try:
            given, outputs = self._given(inputs)
            if not given:
                return comparisons
            values = self._runner(runtime, given)({**inputs, **given})
        except Exception:  # then nothing is known, and the outputs differ
            return comparisons
        expected = given | outputs
        random = self._model.random if runtime in BY_BODY else frozenset()
        for name, computed in _computed([*given, *outputs], given).items():
            pair = in_one_width(values[computed], expected[name])
            agrees = compare(*pair, self._tolerance, random=name in random).agrees
            if not agrees and not (name in self._choices and self._choices[name].ties(*pair, given)):
                return comparisons
        return {name: c if c.agrees else replace(c, agrees=True, note=SAME_SELECTIONS) for name, c in found.items()}

    def close(self) -> None:
        """Delete the changed model."""
        self._runners.clear()
        self._model.variant("selections", self._folder).unlink(missing_ok=True)

    def _cuts(self) -> dict[str, LayerOutput]:
        if self._cut is None:
            layers = self._layers()
            graph = self._model.proto.graph
            cuts = before_selections(graph, layers)
            self._choices = {name: choice for name, choice in choices(graph, layers) if choice.data in cuts}
            self._cut = {name: layers[name] for name in dict.fromkeys([*cuts, *self._choices])}
        return self._cut

    def _given(self, inputs: Arrays) -> tuple[Arrays, Arrays]:
        """Return the values before selections, and the outputs, of one run of the source's runtime.

        The values are the floats, and the elements and indices of each TopK. An integer may be equal to another one, too.
        """
        if self._expected is None or self._expected[0] is not inputs:
            cuts = self._cuts()
            chosen_from = {choice.data for choice in self._choices.values()}
            inference = self._baseline.run(list(inputs.values()), list(cuts.values()))
            given = {
                name: value
                for name, value in zip(cuts, inference.layers, strict=True)
                if value is not None and (value.dtype.kind in "fV" or name in self._choices or name in chosen_from)
            }
            self._expected = inputs, given, dict(zip(self._model.outputs, inference.outputs[0], strict=True))
        return self._expected[1:]

    def _runner(self, runtime: str, given: Arrays) -> Callable[[Mapping[str, np.ndarray]], Arrays]:
        key = runtime, frozenset(given)
        if key not in self._runners:
            computed = _computed([*given, *self._model.outputs], given)
            path = self._model.variant("selections", self._folder)
            path.write_bytes(_with_given(self._model.proto, given, computed).SerializeToString())
            self._runners[key] = runner(runtime, path, list(dict.fromkeys(computed.values())))
        return self._runners[key]


@dataclass(frozen=True)
class Choice:
    """The elements that a TopK selects: their indices along ``axis`` of the value ``data``."""

    data: str
    axis: int

    def ties(self, chosen: np.ndarray, others: np.ndarray, given: Arrays) -> bool:
        """Return whether the indices differ only between equal elements."""
        data = given.get(self.data)
        if data is None or chosen.shape != others.shape or data.ndim != chosen.ndim:
            return False
        try:
            ours, theirs = (np.take_along_axis(data, indices.astype(np.int64), self.axis) for indices in (chosen, others))
        except IndexError:
            return False
        distinct = np.diff(np.sort(chosen, self.axis), axis=self.axis).all()
        return bool(distinct) and np.array_equal(ours, theirs, equal_nan=True)


def choices(graph: onnx.GraphProto, known: Mapping[str, object]) -> Iterator[tuple[str, Choice]]:
    """Yield the known values that are the indices of a TopK, possibly after a cast."""
    indices = {}
    for node in graph.node:
        if node.op_type == "TopK" and node.domain == "":
            indices[node.output[1]] = Choice(node.input[0], _attribute(node, "axis", -1))
        elif node.op_type == "Cast" and node.input[0] in indices:
            indices[node.output[0]] = indices[node.input[0]]
    return ((name, choice) for name, choice in indices.items() if name in known)


def before_selections(graph: onnx.GraphProto, known: Mapping[str, object]) -> list[str]:
    """Return the nearest known values from which the inputs of selections are computed, in the graph's order.

    Args:
        graph: the outermost graph.
        known: the values that can be given, by name.
    """
    producers = {name: node for node in graph.node for name in node.output if name}
    found: set[str] = set()
    seen: set[str] = set()
    pending = [name for node in graph.node if _selects(node) for name in _inputs(node)]
    while pending:
        name = pending.pop()
        if name in seen or name not in producers:
            continue
        seen.add(name)
        if name in known:
            found.add(name)
        elif not _selects(producers[name]):
            pending += _inputs(producers[name])
    return [name for node in graph.node for name in node.output if name in found]


def _selects(node: onnx.NodeProto) -> bool:
    return any(
        _attribute(inner, "to") in _INTEGERS
        if inner.op_type == "Cast"
        else inner.op_type in _SELECTING.get(inner.domain, ())
        for inner in _with_nested(node)
    )


def _attribute(node: onnx.NodeProto, name: str, default: int = 0) -> int:
    return next((attribute.i for attribute in node.attribute if attribute.name == name), default)


def _inputs(node: onnx.NodeProto) -> Iterator[str]:
    return (name for inner in _with_nested(node) for name in inner.input if name)


def _with_nested(node: onnx.NodeProto) -> Iterator[onnx.NodeProto]:
    yield node
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield from all_nodes(attribute.g)


def _computed(names: Sequence[str], given: Mapping[str, object]) -> dict[str, str]:
    """Return under which names a model with given values computes the values."""
    return {name: f"{name}/computed" if name in given else name for name in names}


def _with_given(proto: onnx.ModelProto, given: Mapping[str, np.ndarray], computed: Mapping[str, str]) -> onnx.ModelProto:
    """Return the model with values as inputs, and with its own results for them as outputs."""
    model = onnx.ModelProto()
    model.CopyFrom(proto)
    graph = model.graph
    for node in graph.node:
        for place, name in enumerate(node.output):
            if name in given:
                node.output[place] = computed[name]
    for value in list(graph.value_info):
        if value.name in given:
            graph.value_info.remove(value)
    for value in graph.output:
        value.name = computed.get(value.name, value.name)
    present = {value.name for value in graph.output}
    for name, array in given.items():
        element_type = onnx.helper.np_dtype_to_tensor_dtype(array.dtype)
        graph.input.append(onnx.helper.make_tensor_value_info(name, element_type, [None] * array.ndim))
        if computed[name] not in present:
            graph.output.append(onnx.ValueInfoProto(name=computed[name]))
    return model
