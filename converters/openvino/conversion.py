"""From an OpenVINO IR to one ONNX model: the walk over the layers, then the passes, then the file."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

import onnx
import onnx_ir as ir

import onnx_specops
from converters.openvino import rules as _rules  # noqa: F401  (importing it registers the rules)
from converters.openvino.errors import ConversionError, Problem
from converters.openvino.graph import Body, Graph, InputPort, Layer, Model, OutputPort
from converters.openvino.ir import read
from converters.openvino.onnx_types import data_type
from converters.openvino.packed import unpacked
from converters.openvino.passes.finish import finish
from converters.openvino.passes.variables import add_variable, expose_variables
from converters.openvino.rule import Context, Unsupported, find_rule
from converters.openvino.rules.state import Variable
from converters.openvino.shapes import same_dims
from converters.openvino.weights import Weights, constant_tensor, save
from onnx_specops.bodies import BodyError
from onnx_specops.building import IR_VERSION, OPSET_IMPORTS, Builder, Value, constant_value, new_value

STRUCTURAL = ("Parameter", "Const", "Result")


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
        without_body = finish(emitted.model, fold=weights != "reference")
    except BodyError as error:
        raise ConversionError([_body_problem(source, error)]) from error
    expose_variables(emitted.model, emitted.variables)
    proto, placement, size = save(emitted.model, source, None if onnx_path is None else Path(onnx_path), weights)
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
        IRError: when the files are no readable IR.
    """
    source = read(model_path)
    emitted = _walk(source)
    counts: Counter[tuple[str, str]] = Counter()
    for layer in _all_layers(source):
        counts[layer.type, layer.version] += 1
    bad = {(problem.layer_type, problem.layer_id) for problem in emitted.problems}
    failing = {(layer.type, layer.version) for layer in _all_layers(source) if (layer.type, layer.id) in bad}
    rows = [
        InspectedType(
            type_, version, count, sorted(emitted.becomes.get((type_, version), ())), (type_, version) not in failing
        )
        for (type_, version), count in sorted(counts.items())
    ]
    return Inspection(source.path, rows, emitted.problems)


@dataclass
class Emitted:
    """The ONNX graph of an IR before the passes, and which value holds which layer's output."""

    model: ir.Model
    values: dict[tuple[int, int], Value]
    becomes: dict[tuple[str, str], Counter[str]]
    problems: list[Problem]
    variables: list[Variable]


def emit(source: Model) -> Emitted:
    """Apply the rules to every layer; raises `ConversionError` with all that cannot be converted."""
    emitted = _walk(source)
    if emitted.problems:
        raise ConversionError(emitted.problems)
    return emitted


def _walk(source: Model) -> Emitted:
    graph = ir.Graph([], [], nodes=[], name=source.name or "model", opset_imports=dict(OPSET_IMPORTS))
    walk = _Walk(source)
    op = Builder(graph)
    for layer, names in zip(source.parameters, source.input_names, strict=True):
        value = walk.parameter(layer)
        value.name = op.unique(names[0] if names else layer.name)
        graph.inputs.append(value)
        walk.set(layer.outputs[0], value)
    walk.layers(op, source)
    for layer, names in zip(source.results, source.output_names, strict=True):
        value = op.result(walk.get(layer.inputs[0]))
        name = names[0] if names else _producer_name(layer.inputs[0].source)
        value.name = op.unique(name) if value.name != name else name
        graph.outputs.append(value)
    for variable in walk.variables.values():
        add_variable(op, variable)
    model = ir.Model(
        graph, ir_version=IR_VERSION, producer_name=onnx_specops.DOMAIN, producer_version=onnx_specops.__version__
    )
    values = {(port.layer.id, port.index): value for port, value in walk.values.items() if port.layer in walk.top_level}
    return Emitted(model, values, walk.becomes, walk.problems, list(walk.variables.values()))


@dataclass
class _Walk:
    """The values of every output port so far, and what went wrong."""

    source: Model
    values: dict[OutputPort, Value] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    becomes: dict[tuple[str, str], Counter[str]] = field(default_factory=dict)
    variables: dict[str, Variable] = field(default_factory=dict)
    constants: dict[Any, Value] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.top_level = set(self.source.layers)

    def get(self, port: InputPort) -> Value:
        return self.values[port.source]

    def set(self, port: OutputPort, value: Value) -> None:
        self.values[port] = value

    def parameter(self, layer: Layer) -> Value:
        port = layer.outputs[0]
        try:
            return new_value(data_type(port.element_type), port.dims)
        except ValueError as error:
            self.problem(layer, f"its element type cannot be converted: {error}", "give the model a static element type")
            return new_value(ir.DataType.FLOAT, port.dims)

    def problem(self, layer: Layer, message: str, remedy: str = "") -> None:
        self.problems.append(_problem(self.source, layer, message, remedy))

    def layers(self, op: Builder, graph: Graph) -> None:
        # A variable is read as it was before the run, wherever in the file it is assigned.
        for layer in sorted(graph.layers, key=_is_sink):
            if layer.type == "Const":
                self.set(layer.outputs[0], self.constant(op.outermost, layer))
            elif layer.type not in STRUCTURAL:
                self.layer(op, layer)

    def constant(self, op: Builder, layer: Layer) -> Value:
        constant = layer.constant
        assert constant is not None
        key = (constant.element_type, constant.shape, constant.offset)
        if key not in self.constants:
            path = self.source.weights_path
            value = None if path is None else unpacked(op, constant, path, f"{layer.name}/codes")
            if value is None:
                tensor = constant_tensor(constant, self.source)
                value = constant_value(tensor, name=layer.name if tensor.size > 1 else None)
            self.constants[key] = value
        return self.constants[key]

    def body(self, op: Builder, body: Body, inputs: Sequence[Value]) -> list[Value]:
        for layer, value in zip(body.parameters, inputs, strict=True):
            _check_fed(layer, value)
            self.set(layer.outputs[0], value)
        self.layers(op, body)
        return [self.get(layer.inputs[0]) for layer in body.results]

    def layer(self, op: Builder, layer: Layer) -> None:
        """Emit one layer, or note why that is impossible and go on with values of the types that the file states."""
        context = Context(layer, self.body, self.variables)
        outer, op.scope = op.scope, layer.name
        last = op.graph[-1] if len(op.graph) else None
        try:
            found = find_rule(layer.type, layer.version)
            results = found(op, [self.get(port) for port in layer.inputs], context)
            if len(results) != len(layer.outputs):
                raise Unsupported(f"it has {len(layer.outputs)} outputs where {layer.type} gives {len(results)}")
            # What the file states of shapes is not to be trusted behind a value whose rule says so.
            unstated = any("unstated" in self.get(port).meta for port in layer.inputs)
            for port, value in zip(layer.outputs, results, strict=True):
                self.set(port, _settle(op, port, value, unstated or "unstated" in value.meta))
        except Unsupported as error:
            self.problem(layer, error.message, error.remedy)
        except Exception as error:  # a malformed layer shows as whatever ONNX or NumPy say to it
            self.problem(layer, f"its inputs or attributes do not fit together: {_one_line(error)}", "check the file")
        finally:
            op.scope = outer
        for port in layer.outputs:
            if port not in self.values:
                self.set(port, _placeholder(port))
        self._count(op, layer, last)

    def _count(self, op: Builder, layer: Layer, last: ir.Node | None) -> None:
        counter = self.becomes.setdefault((layer.type, layer.version), Counter())
        for node in reversed(op.graph):
            if node is last:
                break
            # What stands in the graphs of a layer with bodies is what the bodies' layers became.
            counter.update(map(_operator_name, [node] if layer.bodies else _with_nested(node)))


def _settle(op: Builder, port: OutputPort, value: Value, unstated: bool = False) -> Value:
    """Check a rule's result against the file's element type and dimensions, and let the value bear the layer's name.

    ``unstated``: the dimensions (not the rank) are those that ONNX infers, whatever the file says.
    """
    layer = port.layer
    if port.element_type.value != "dynamic" and value.dtype != data_type(port.element_type):
        got = "none" if value.dtype is None else value.dtype.name
        raise Unsupported(
            f"its output {port.index} is {port.element_type.value} in the file, the operation gives {got}",
            "check that the file is intact",
        )
    stated_dims = port.dims
    if unstated and value.const_value is None and stated_dims is not None:
        value.meta["unstated"] = True
        stated_dims = (None,) * len(stated_dims)
    if stated_dims is not None:
        if value.shape is None:
            if value.const_value is None:
                value.shape = ir.Shape(list(stated_dims))
        else:
            inferred = list(value.shape)
            if not same_dims([d if isinstance(d, int) else None for d in inferred], stated_dims):
                text = [d if isinstance(d, int) else "?" for d in inferred]
                stated = ["?" if d is None else d for d in stated_dims]
                raise Unsupported(
                    f"its output {port.index} has the shape {stated} in the file, the operation gives {text}".replace(
                        "'", ""
                    ),
                    "check that the file is intact",
                )
            if value.const_value is None and not value.is_graph_input():
                value.shape = ir.Shape([b if b is not None else a for a, b in zip(inferred, stated_dims, strict=True)])
    producer = value.producer()
    if producer is not None and producer.graph is op.graph and "settled" not in value.meta:
        value.meta["settled"] = True
        value.name = op.unique(layer.name if len(layer.outputs) == 1 else f"{layer.name}.{port.index}")
    return value


def _is_sink(layer: Layer) -> bool:
    return layer.type == "Assign" and not any(port.consumers for port in layer.outputs)


def _with_nested(node: ir.Node) -> Iterator[ir.Node]:
    yield node
    for attribute in node.attributes.values():
        if attribute.type == ir.AttributeType.GRAPH:
            for inner in attribute.as_graph():
                yield from _with_nested(inner)


def _operator_name(node: ir.Node) -> str:
    return f"{node.domain}.{node.op_type}" if node.domain else node.op_type


def _check_fed(parameter: Layer, value: Value) -> None:
    """Refuse a body whose Parameter states another type or shape than what feeds it has."""
    port = parameter.outputs[0]
    dims = value.dims
    fits = port.dims is None or dims is None or same_dims(port.dims, dims)
    if not fits or (port.element_type.value != "dynamic" and value.dtype not in (None, data_type(port.element_type))):
        kind, shape = "?" if value.dtype is None else value.dtype.name, "?" if dims is None else dims
        raise Unsupported(
            f'the Parameter "{parameter.name}" of its body does not fit what feeds it: {port.element_type.value} '
            f"{list(port.dims or ())} and {kind} {shape}".replace("None", "?"),
            "check that the file is intact",
        )


def _placeholder(port: OutputPort) -> Value:
    try:
        return new_value(data_type(port.element_type), port.dims)
    except ValueError:
        return new_value(None, port.dims)


def _producer_name(port: OutputPort) -> str:
    return port.layer.name if len(port.layer.outputs) == 1 else f"{port.layer.name}.{port.index}"


def _problem(source: Model, layer: Layer, message: str, remedy: str) -> Problem:
    return Problem(message, str(source.path), layer.line, layer.name, layer.type, layer.id, remedy)


def _body_problem(source: Model, error: BodyError) -> Problem:
    """What is wrong with the layer that a node comes from, whose name begins with the layer's."""
    message = f"its inputs or attributes do not fit together: {_one_line(error)}"
    layers = [layer for layer in _all_layers(source) if f"{error.node_name}/".startswith(f"{layer.name}/")]
    if not layers:
        return Problem(message, str(source.path), remedy="check the file")
    return _problem(source, max(layers, key=lambda layer: len(layer.name)), message, "check the file")


def _one_line(error: Exception) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:300]}"


def _all_layers(graph: Graph) -> Iterator[Layer]:
    for layer in graph.layers:
        yield layer
        for body in layer.bodies.values():
            yield from _all_layers(body)


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
    nodes = Counter(map(_operator_name, graph.all_nodes()))
    becomes: dict[str, list[str]] = {}
    for (type_, _), counter in sorted(emitted.becomes.items()):
        becomes[type_] = sorted({*becomes.get(type_, ()), *counter})
    alive = {value.name for node in graph for value in node.outputs} | {value.name for value in graph.inputs}
    return Report(
        path=source.path,
        layers=dict(sorted(Counter(layer.type for layer in _all_layers(source)).items())),
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
