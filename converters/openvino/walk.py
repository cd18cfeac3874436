"""The walk over an IR's layers: apply the rules, and collect all problems."""

from __future__ import annotations

import math
import traceback
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import FrameType
from typing import Any, Protocol

import onnx_ir as ir

import onnx_specops
from converters.errors import REPORT, ConversionError, Fault, LayerError, Malformed, Problem, Problems, not_enough_memory
from converters.inference_engine import rules as _layer_rules  # noqa: F401
from converters.openvino import rules as _rules  # noqa: F401  (importing it registers the rules)
from converters.openvino.onnx_types import data_type, element_type
from converters.openvino.packed import unpacked
from converters.openvino.reader import ir10
from converters.openvino.reader.graph import Body, Graph, InputPort, Layer, Model, OutputPort
from converters.openvino.reader.tensor_names import friendly_name, output_names
from converters.openvino.rule import Context, find_rule
from converters.openvino.stated import Corrections, add_dims, are_compatible, check_argument, correct_element_type
from converters.openvino.tensors import constant_tensor
from converters.passes.valid_nodes import InvalidNodes
from converters.plugins import load_installed
from converters.source import Emitted, operator_name
from converters.targets.fitting import TargetError
from converters.variables import Variable, expose
from onnx_specops.bodies import BodyError
from onnx_specops.building import IR_VERSION, OPSET_IMPORTS, Builder, Value, cast_unrounded, constant_value, new_value
from onnx_specops.domain import LimitError
from onnx_specops.graphs import ORIGIN, all_nodes
from onnx_specops.lowering import LoweringError
from onnx_specops.partial_values import symbol

STRUCTURAL = ("Parameter", "Const", "Result")
"""Layer types without rules."""

_MOST_ELEMENTS = 2**63 - 1
_COMBINING = ("Cell", "Sequence")
"""The ends of the types of layers that may get the batch from a constant: initial states, or lengths."""
_OURS = ("converters", "onnx_specops")
_USER_RULE = "correct the rule, or check that the file is intact"


def emit(source: Model, corrections: Corrections | None = None) -> Emitted:
    """Apply the rules to all layers. Raise `ConversionError` with everything that cannot be converted.

    ``corrections`` receives the differences between the file and the computed values.
    """
    emitted = walk(source, corrections)
    if emitted.problems:
        raise ConversionError.of(emitted.problems)
    return emitted


def walk(source: Model, corrections: Corrections | None = None) -> Emitted:
    """Apply the rules to all layers, regardless of errors. ``source`` is not changed, except its remarks."""
    load_installed()
    graph = ir.Graph([], [], nodes=[], name=source.name or "model", opset_imports=dict(OPSET_IMPORTS))
    walk = _Walk(source, Corrections() if corrections is None else corrections)
    op = Builder(graph, named_sizes=True)
    for layer, names in zip(source.parameters, source.input_names, strict=True):
        walk.input(op, layer, names[0])
    walk.reserved = {names[0] for names in source.output_names} - {value.name for value in graph.inputs}
    op.reserve(walk.reserved)
    walk.layers(op, source)
    for layer, names in zip(source.results, output_names(source, walk.corrections.omitted), strict=True):
        walk.output(op, layer, names[0])
    variables = expose(op, walk.variables.values())
    model = ir.Model(
        graph, ir_version=IR_VERSION, producer_name=onnx_specops.DOMAIN, producer_version=onnx_specops.__version__
    )
    top_level = set(source.layers)
    values = {(port.layer.id, port.index): value for port, value in walk.values.items() if port.layer in top_level}
    # OpenVINO's CPU plugin keeps 16-bit floats in float32 between computations. It also converts float16 without rounding,
    # but not bfloat16.
    return Emitted(
        model,
        values,
        walk.becomes,
        walk.problems.found,
        variables,
        keep_float32=True,
        converted_unrounded=[ir.DataType.FLOAT16],
    )


@dataclass
class _Walk:
    """The values of all output ports so far, and the problems."""

    source: Model
    corrections: Corrections
    values: dict[OutputPort, Value] = field(default_factory=dict)
    becomes: dict[tuple[str, str], Counter[str]] = field(default_factory=dict)
    variables: dict[str, Variable] = field(default_factory=dict)
    constants: dict[Any, Value] = field(default_factory=dict)
    ignored_dims: set[Value] = field(default_factory=set)
    constants_only: set[Layer] = field(default_factory=set)  # layers that compute from constants only
    named: set[Value] = field(default_factory=set)
    reserved: set[str] = field(default_factory=set)  # names that are reserved for the model's outputs

    def __post_init__(self) -> None:
        self.problems = Problems(str(self.source.path))

    def get(self, port: InputPort) -> Value:
        return self.values[port.source]

    def input(self, op: Builder, layer: Layer, name: str) -> None:
        """Add a Parameter as an input of the model, with the type that OpenVINO gives it."""
        port = layer.outputs[0]
        try:
            inner = data_type(port.element_type)
        except ValueError as error:
            message = f"its element type cannot be converted: {error}"
            self.problems.add(message, "give the model a static element type", layer=layer, fault=Fault.UNSUPPORTED)
            inner = ir.DataType.FLOAT
        # Each dynamic dimension has a name, which inference propagates and runtimes can fix.
        dims = None if port.dims is None else [symbol(f"{name}_{i}") if d is None else d for i, d in enumerate(port.dims)]
        value = new_value(data_type(ir10.input_type(self.source, element_type(inner))), dims, op.unique(name))
        op.graph.inputs.append(value)
        self.values[port] = cast_unrounded(op, value, inner)

    def output(self, op: Builder, layer: Layer, name: str) -> None:
        """Add the input of a Result as an output of the model, with the type that OpenVINO gives it."""
        port = layer.inputs[0]
        inner = value = self.get(port)
        kind = self.corrections.type_of(port.source)
        presented = ir10.output_type(self.source, kind)
        if presented is not kind:
            value = cast_unrounded(op, inner, data_type(presented))
        if value.name == name and value.is_graph_input() and not value.is_graph_output():
            op.graph.outputs.append(value)  # the value is an input and an output
            return
        value = op.result(value)
        if name in self.reserved:
            self.reserved.remove(name)
            value.name = name
        elif value.name != name:
            value.name = op.unique(name)
        op.graph.outputs.append(value)

    def layers(self, op: Builder, graph: Graph) -> None:
        # ReadValue returns the value before the run, regardless of the position of Assign in the file.
        for layer in sorted(graph.layers, key=_is_sink):
            if layer.type == "Const":
                self.values[layer.outputs[0]] = self.constant(op.outermost, layer)
                self.constants_only.add(layer)
            elif layer.type not in STRUCTURAL:
                self.layer(op, layer)

    def constant(self, op: Builder, layer: Layer) -> Value:
        constant, path = layer.constant, self.source.weights_path
        assert constant is not None
        # Constants outside the .bin have no offset that distinguishes them.
        key = constant if constant.offset is None else (constant.element_type, constant.shape, constant.offset)
        if key not in self.constants:
            value = None if path is None else unpacked(op, constant, path, f"{layer.name}/codes")
            if value is None:
                tensor = constant_tensor(constant, path)
                value = constant_value(tensor, name=layer.name if tensor.size > 1 else None)
            self.constants[key] = value
        return self.constants[key]

    def body(self, op: Builder, body: Body, inputs: Sequence[Value]) -> list[Value]:
        for layer, value in zip(body.parameters, inputs, strict=True):
            check_argument(layer, value)
            self.values[layer.outputs[0]] = value
        self.layers(op, body)
        return [self.get(layer.inputs[0]) for layer in body.results]

    def layer(self, op: Builder, layer: Layer) -> None:
        """Emit one layer. If it cannot be converted, record why, and continue with values of the types in the file."""
        context = Context(layer, self.body, self.variables, self.ignored_dims, self.source.remarks, self.corrections)
        outer, op.scope = op.scope, layer.name
        last = op.graph[-1] if len(op.graph) else None
        try:
            found = find_rule(layer.type, layer.version)
            results = found(op, [self.get(port) for port in layer.inputs], context)
            if len(results) < len(layer.outputs):
                raise Malformed(f"it has {len(layer.outputs)} outputs, but {layer.type} has {len(results)}")
            if len(results) > len(layer.outputs) and not layer.bodies:
                self.corrections.omitted[layer] = len(results) - len(layer.outputs)
                self.source.remarks.add(f"outputs of {layer.type} that the file omits", layer=layer)
            ignored_dims = any(self.get(port) in self.ignored_dims for port in layer.inputs)
            varying = self.varying_inputs(layer)
            if layer.inputs and not layer.bodies and not varying:
                self.constants_only.add(layer)
            sources = self.sources(layer, varying)
            for port, value in zip(layer.outputs, results, strict=False):
                if ignored_dims and value.const_value is None:
                    self.ignored_dims.add(value)
                self.values[port] = self.checked_value(op, port, value, sources)
        except Exception as error:  # a malformed layer can cause any exception of ONNX or NumPy
            problem = layer_problem(str(self.source.path), layer, error)
            self.problems.add(problem.message, problem.remedy, layer=layer, fault=problem.fault, cause=problem.cause)
        finally:
            op.scope = outer
        for port in layer.outputs:
            if port not in self.values:
                self.values[port] = _placeholder(port)
        self.count(op, layer, last)

    def sources(self, layer: Layer, varying: int) -> Collection[int] | None:
        """Return the numbers that may replace dynamic dimensions of a layer's outputs; ``None`` if any number may.

        If the dimensions follow from those of one value, besides constants, there are none. If they follow from several
        values, these are the dimensions of all inputs.
        """
        if layer.bodies or not varying:
            return None
        if varying == 1 and not layer.type.endswith(_COMBINING):
            return ()
        dims = [self.get(port).dims for port in layer.inputs]
        return None if None in dims else {size for one in dims for size in one or () if size is not None}

    def varying_inputs(self, layer: Layer) -> int:
        """Return the number of a layer's inputs that do not follow from constants only."""
        return sum(port.source.layer not in self.constants_only for port in layer.inputs)

    def checked_value(self, op: Builder, port: OutputPort, value: Value, sources: Collection[int] | None) -> Value:
        """Check a rule's result against the file, complete its type and shape, and give it the layer's name."""
        remarks = self.source.remarks
        correct_element_type(port, value, self.corrections, remarks)
        stated = self.corrections.dims_of(port)
        if stated is not None and value in self.ignored_dims:
            stated = (None,) * len(stated)
        if are_compatible(port, value, stated, remarks, sources=sources):
            add_dims(value, stated)
        else:
            self.corrections.dims[port] = None if value.dims is None else tuple(value.dims)
            self.ignored_dims.add(value)  # the file's dimensions of all values that depend on it are incorrect, too
        _check_size(value)
        producer = value.producer()
        if producer is not None and producer.graph is op.graph and value not in self.named:
            self.named.add(value)
            value.name = op.unique(friendly_name(port, self.corrections.omitted))
        return value

    def count(self, op: Builder, layer: Layer, last: ir.Node | None) -> None:
        counter = self.becomes.setdefault((layer.type, layer.version), Counter())
        for node in reversed(op.graph):
            if node is last:
                break
            for inner in all_nodes((node,)):
                inner.meta.setdefault(ORIGIN, layer)
                # Nodes in the graphs of a layer with bodies belong to the bodies' layers.
                if inner is node or not layer.bodies:
                    counter[operator_name(inner)] += 1


def _check_size(value: Value) -> None:
    """Raise an error if the number of a value's elements exceeds 64 bits, which runtimes and shape inference use."""
    if value.is_static and (count := math.prod(dim or 0 for dim in value.dims or ())) > _MOST_ELEMENTS:
        raise Malformed(f"a result of the shape {value.dims} has {count:,} elements; expected at most 2^63 - 1")


def layer_problem(file: str, layer: Layer, error: Exception) -> Problem:
    """Return the problem of the layer at which an exception was raised, and its cause."""
    place = (file, layer.line, layer.name, layer.type, layer.id)
    if isinstance(error, LayerError):
        return Problem(error.message, *place, error.remedy, error.fault, error)
    if isinstance(error, LimitError):
        return Problem(f"it exceeds a limit: {one_line(error)}", *place, fault=Fault.UNSUPPORTED, cause=error)
    if isinstance(error, MemoryError):
        return Problem(not_enough_memory(error), *place, cause=error)
    if (rules := _file_of_rule(layer)) is not None:
        text = f"{type(error).__name__}: {one_line(error)}"
        line = next((line for frame, line in _frames(error) if frame.f_code.co_filename == rules), None)
        where = rules if line is None else f"{rules}, line {line}"
        return Problem(f"its rule fails ({where}): {text}", *place, _USER_RULE, Fault.USAGE, error)
    if _is_mistake(error):
        text = f"{type(error).__name__}: {one_line(error)} ({_place(error)})"
        return Problem(f"internal error: {text}", *place, REPORT, Fault.INTERNAL, error)
    message = f"its inputs or attributes are inconsistent: {one_line(error)}"
    return Problem(message, *place, Malformed.usual_remedy, Fault.MALFORMED, error)


def body_problem(source: Model, error: BodyError) -> Problem:
    """Return the problem of the layer for which a node was emitted."""
    cause = error.__cause__ if isinstance(error.__cause__, Exception) else error
    if (layer := _layer_of(_by_name(source), error)) is not None:
        return layer_problem(str(source.path), layer, cause)
    message = f"its inputs or attributes are inconsistent: {one_line(error)}"
    return Problem(message, str(source.path), remedy=Malformed.usual_remedy, cause=cause)


def opset_problems(source: Model, error: LoweringError, opset: int, corrections: Corrections) -> list[Problem]:
    """Return the problems of nodes that an opset cannot represent, once per layer."""
    ports = {names[0]: layer for layer, names in zip(source.parameters, source.input_names, strict=True)}
    results = zip(source.results, output_names(source, corrections.omitted), strict=True)
    ports |= {names[0]: layer for layer, names in results}
    found: dict[Layer | None, dict[str, int]] = {}
    layers = _by_name(source)
    for unsupported in error.unsupported:
        layer = ports.get(unsupported.node_name) or _layer_of(layers, unsupported)
        found.setdefault(layer, {})[unsupported.message] = unsupported.least
    problems = Problems(str(source.path))
    for layer, messages in found.items():
        message = f"opset {opset} cannot represent {', nor '.join(messages)}"
        problems.add(message, f"use opset {max(messages.values())} or newer", layer=layer, fault=Fault.UNSUPPORTED)
    return problems.found


def node_problems(source: Model, error: InvalidNodes) -> list[Problem]:
    """Return the problems of nodes of the finished model, once per layer. They are errors of a rule or a pass."""
    layers = _by_name(source)
    found: dict[tuple[Layer | None, str], None] = {}
    for problem in error.problems:
        found.setdefault((_layer_of(layers, problem), problem.message))
    problems = Problems(str(source.path))
    for layer, message in found:
        if layer is not None and (rules := _file_of_rule(layer)) is not None:
            problems.add(f"its rule ({rules}) emits an invalid node: {message}", _USER_RULE, layer=layer, fault=Fault.USAGE)
        else:
            problems.add(f"internal error: {message}", REPORT, layer=layer, fault=Fault.INTERNAL)
    return problems.found


def target_problems(source: Model, error: TargetError) -> list[Problem]:
    """Return the problems of nodes that a target does not support, once per layer."""
    layers = _by_name(source)
    ports = {names[0]: layer for layer, names in zip(source.parameters, source.input_names, strict=True)}
    found: dict[tuple[Layer | None, str], dict[str, None]] = {}
    for one in error.untaken:
        layer = ports.get(one.node_name) or _layer_of(layers, one)
        found.setdefault((layer, one.remedy), {})[one.reason] = None
    problems = Problems(str(source.path))
    for (layer, remedy), reasons in found.items():
        message = f"{error.target.title} does not support {', nor '.join(reasons)}"
        problems.add(message, remedy, layer=layer, fault=Fault.UNSUPPORTED)
    return problems.found


def _by_name(source: Model) -> dict[str, Layer]:
    """Return the first layer of each name."""
    return {layer.name: layer for layer in reversed(list(all_layers(source)))}


class _Placed(Protocol):
    """A problem of a node."""

    @property
    def node_name(self) -> str: ...

    @property
    def origin(self) -> object | None: ...


def _layer_of(layers: Mapping[str, Layer], found: _Placed) -> Layer | None:
    """Return the layer for which a node was emitted.

    Casts and other nodes that were not emitted by a builder do not record it. Their names begin with the layer's. If several
    layers match, it is the one with the longest name.
    """
    if isinstance(found.origin, Layer):
        return found.origin
    name = found.node_name
    while name not in layers and "/" in name:
        name = name.rpartition("/")[0]
    return layers.get(name)


def _file_of_rule(layer: Layer) -> str | None:
    """Return the file of the rule that converts a layer, if it is not built in."""
    try:
        function = find_rule(layer.type, layer.version).function
    except LayerError:
        return None
    return None if function.__module__.partition(".")[0] in _OURS else function.__code__.co_filename


def _frames(error: Exception) -> list[tuple[FrameType, int]]:
    """Return the frames of an exception and their lines, innermost first."""
    return list(traceback.walk_tb(error.__traceback__))[::-1]


def _is_mistake(error: Exception) -> bool:
    """Return whether an exception indicates an error in this project's code, by its kind and where it was raised."""
    if not isinstance(error, (AssertionError, AttributeError, NameError, TypeError)):
        return False
    names = [frame.f_globals.get("__name__", "") for frame, _ in traceback.walk_tb(error.__traceback__)]
    return bool(names) and names[-1].partition(".")[0] in _OURS


def _place(error: Exception) -> str:
    frame, line = list(traceback.walk_tb(error.__traceback__))[-1]
    return f"{frame.f_globals.get('__name__', '?')}:{line}"


def one_line(error: Exception) -> str:
    """Return an exception's text as one line of bounded length."""
    return " ".join(str(error).split())[:300]


def all_layers(graph: Graph) -> Iterator[Layer]:
    """Yield all layers of a graph and its nested bodies."""
    for layer in graph.layers:
        yield layer
        for body in layer.bodies.values():
            yield from all_layers(body)


def _is_sink(layer: Layer) -> bool:
    return layer.type == "Assign" and not any(port.consumers for port in layer.outputs)


def _placeholder(port: OutputPort) -> Value:
    try:
        return new_value(data_type(port.element_type), port.dims)
    except ValueError:
        return new_value(None, port.dims)
