"""From an OpenVINO IR to one ONNX model: read, walk over the layers, passes, file."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

import onnx
import onnx_ir as ir

import onnx_specops
from converters.errors import ConversionError, Problem
from converters.openvino.reader.graph import Model
from converters.openvino.reader.read import read
from converters.openvino.walk import Emitted, all_layers, body_problem, emit, operator_name, walk
from converters.passes.finish import finish
from converters.saving import Weights, save
from converters.variables import complete
from onnx_specops.bodies import BodyError


@dataclass(frozen=True)
class Report:
    """What a conversion did.

    Attributes:
        path: the IR's .xml file.
        layers: how many layers of each type the IR has, those of nested bodies included.
        becomes: layer type -> the ONNX operators that its layers became (``onnx_specops.`` before those of the domain).
        nodes: how many nodes of each operator the ONNX model has.
        custom_operators: the domain's operators that the model uses.
        without_body: those among them that need a kernel, since standard ONNX cannot say them.
        values: ``(layer id, output index)`` -> the name of the ONNX value that holds that output of a top-level layer, where
            one does (in float32, where a 16-bit float is an intermediate result only).
        weights: where the weights are: ``"embed"``, ``"copy"`` or ``"reference"``.
        weights_bytes: how many bytes of weights the model has.
        seconds: the time that it took.
    """

    path: Path
    layers: dict[str, int]
    becomes: dict[str, list[str]]
    nodes: dict[str, int]
    custom_operators: list[str]
    without_body: list[str]
    values: dict[tuple[int, int], str]
    weights: Weights
    weights_bytes: int
    seconds: float


class Conversion(NamedTuple):
    """The result of `convert`."""

    model: onnx.ModelProto
    report: Report


def convert(
    model_path: str | Path,
    onnx_path: str | Path | None = None,
    *,
    weights: Literal["auto", "embed", "copy", "reference"] = "auto",
) -> Conversion:
    """Convert an OpenVINO IR into an ONNX model that computes what OpenVINO's CPU computes.

    Inputs and outputs keep OpenVINO's order, names, element types and dynamic dimensions.

    Args:
        model_path: the .xml; its .bin lies beside it.
        onnx_path: where to write the model; ``None`` writes nothing.
        weights: ``"embed"`` puts the weights into the .onnx file; ``"reference"`` lets it refer to the IR's own .bin, which
            must lie in the same folder; ``"copy"`` puts them into a file of their own beside it; ``"auto"`` embeds up to
            1 GiB and above that refers to the .bin where it lies beside the .onnx, else copies.

    Returns:
        The model (with external weights as the file has them) and the `Report`; they unpack as a pair.

    Raises:
        ConversionError: with every problem of the model at once: file, line, layer and remedy.
    """
    started = time.perf_counter()
    source = read(model_path)
    emitted = emit(source)
    # By name: where a pass takes a value's place, the new one bears its name.
    names = {key: value.name or "" for key, value in emitted.values.items()}
    try:
        # OpenVINO's CPU keeps 16-bit floats in float32 between computations; it converts float16 unrounded as well, but
        # bfloat16 as it is.
        without_body = finish(
            emitted.model,
            fold=weights != "reference",
            keep_float32=True,
            converted_unrounded=[ir.DataType.FLOAT16],
        )
    except BodyError as error:
        raise ConversionError.of(body_problem(source, error)) from error
    complete(emitted.model, emitted.variables)
    target = None if onnx_path is None else Path(onnx_path)
    proto, placement, size = save(emitted.model, target, weights, source=source.path, source_weights=source.weights_path)
    report = _report(source, emitted, names, without_body, placement, size, time.perf_counter() - started)
    return Conversion(proto, report)


@dataclass(frozen=True)
class InspectedType:
    """The layers of one type and version in an IR, and what they become.

    Attributes:
        type: the layer type.
        version: its opset.
        count: how many layers there are.
        becomes: the ONNX operators that they become (``onnx_specops.`` before those of the domain).
        convertible: whether all of them convert.
    """

    type: str
    version: str
    count: int
    becomes: list[str]
    convertible: bool


@dataclass(frozen=True)
class Inspection:
    """What `inspect` found: a row for each layer type and version, and everything that cannot be converted."""

    path: Path
    rows: list[InspectedType]
    problems: list[Problem]


def inspect(model_path: str | Path) -> Inspection:
    """See what an IR's layers would become, without writing anything.

    Raises:
        MalformedError: when the files are no readable IR.
    """
    source = read(model_path)
    emitted = walk(source)
    counts: Counter[tuple[str, str]] = Counter()
    for layer in all_layers(source):
        counts[layer.type, layer.version] += 1
    bad = {(problem.layer_type, problem.layer_id) for problem in emitted.problems}
    failing = {(layer.type, layer.version) for layer in all_layers(source) if (layer.type, layer.id) in bad}
    rows = [
        InspectedType(
            type_, version, count, sorted(emitted.becomes.get((type_, version), ())), (type_, version) not in failing
        )
        for (type_, version), count in sorted(counts.items())
    ]
    return Inspection(source.path, rows, emitted.problems)


def _report(
    source: Model,
    emitted: Emitted,
    names: Mapping[tuple[int, int], str],
    without_body: list[str],
    placement: Weights,
    size: int,
    seconds: float,
) -> Report:
    graph = emitted.model.graph
    nodes = Counter(map(operator_name, graph.all_nodes()))
    becomes: dict[str, list[str]] = {}
    for (type_, _), counter in sorted(emitted.becomes.items()):
        becomes[type_] = sorted({*becomes.get(type_, ()), *counter})
    alive = {value.name for node in graph for value in node.outputs} | {value.name for value in graph.inputs}
    return Report(
        path=source.path,
        layers=dict(sorted(Counter(layer.type for layer in all_layers(source)).items())),
        becomes=becomes,
        nodes=dict(sorted(nodes.items())),
        custom_operators=sorted({n.op_type for n in graph.all_nodes() if n.domain == onnx_specops.DOMAIN}),
        without_body=without_body,
        values={key: name for key, name in names.items() if name in alive}
        | {key: v.name for key, v in emitted.values.items() if names[key] not in alive and v.name and v.name in alive},
        weights=placement,
        weights_bytes=size,
        seconds=seconds,
    )
