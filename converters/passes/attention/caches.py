"""Recognition of the KV caches of a language model in OpenVINO's form, and their conversion to inputs and outputs of the
graph.

OpenVINO keeps keys and values in variables: ReadValue, Gather by beam_idx (which selects the rows that a beam search
continues), Concat with the keys or values of the new tokens, Assign. In the converted form, the caller owns the caches. A
cache is an input, which is empty in the first run, and an output with the new tokens. For beam search, the caller reorders
the rows of the input.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import onnx_ir as ir

from converters.passes.attention.probe_shapes import BEAMS, Inputs, ProbeShapes
from converters.passes.attention.probing import Dependence, ProbeError, of_all_sizes
from converters.variables import ExposedVariable
from onnx_specops.graphs import all_nodes, nested
from onnx_specops.replacing import replace_value


class NotACache(ValueError):
    """A variable is not, or not certainly, a cache of keys or values of past tokens."""


@dataclass
class Cache:
    """The cache of keys or values of past tokens.

    Attributes:
        variable: the name of the variable.
        past: ``[batch, heads, past tokens, size]``, an input of the graph.
        present: ``past`` and the new tokens, an output of the graph.
        new: the keys or values of the new tokens.
        axis: the axis of the tokens.
    """

    variable: str
    past: ir.Value
    present: ir.Value
    new: ir.Value
    axis: int


@dataclass
class FixedState:
    """A state whose size does not depend on the number of tokens, such as the last inputs of a convolution.

    Attributes:
        variable: the name of the variable.
        past: ``[batch, ...]``, an input of the graph; zeros before the first run.
        present: the state after the run, an output of the graph.
    """

    variable: str
    past: ir.Value
    present: ir.Value


def make_all_explicit(graph: ir.Graph, variables: Sequence[ExposedVariable]) -> tuple[list[Cache], list[FixedState]]:
    """Convert the variables of a model, caches and states of fixed sizes, to inputs and outputs, as `make_explicit` does.

    Raises:
        NotACache: a variable is neither, or the model has no cache. The graph is unchanged.
    """
    found, inputs, problems = recognize_caches(graph, variables)
    caches = {form.name for form in found}
    states = [_state(item, inputs) for item in variables if item.names and item.variable.name not in caches]
    if problems and (not found or None in states):
        raise problems[0]
    kept = [state for state in states if state is not None]
    if not kept:
        return make_explicit(graph, variables), []
    if inputs.beams is not None:
        _check_beams(inputs.beams, [*(form.chosen for form in found), *(state.chosen for state in kept)])
    explicit = [state.rewritten(graph) for state in kept]
    return _explicit(graph, found, inputs), explicit


def make_explicit(graph: ir.Graph, variables: Sequence[ExposedVariable]) -> list[Cache]:
    """Convert the variables of a model to inputs and outputs, and remove the graph's ``beam_idx``.

    Raises:
        NotACache: a variable is not a cache. The graph is unchanged.
    """
    found, inputs = require_caches(graph, variables)
    return _explicit(graph, found, inputs)


def _explicit(graph: ir.Graph, found: Sequence[CacheForm], inputs: Inputs) -> list[Cache]:
    caches = [form.rewritten(graph) for form in found]
    if inputs.beams is not None:
        for node, _ in list(inputs.beams.uses()):
            if node.op_type == "Shape":  # the input has the same number of rows
                _count_rows(node, inputs.tokens)
        graph.inputs.remove(inputs.beams)
    return caches


def require_caches(graph: ir.Graph, variables: Sequence[ExposedVariable]) -> tuple[list[CacheForm], Inputs]:
    """Return the caches of a model, one for each variable, and its inputs. The graph is unchanged.

    Raises:
        NotACache: a variable is not a cache.
    """
    found, inputs, problems = recognize_caches(graph, variables)
    if problems:
        raise problems[0]
    if not found:
        raise NotACache("the model has no variables, so it does not cache keys and values")
    if inputs.beams is not None:
        _check_beams(inputs.beams, [form.chosen for form in found])
    return found, inputs


def recognize_caches(
    graph: ir.Graph, variables: Sequence[ExposedVariable]
) -> tuple[list[CacheForm], Inputs, list[NotACache]]:
    """Return the caches among the variables of a model, its inputs, and the reasons why other variables are not caches. The
    graph is unchanged.
    """
    exposed = [item for item in variables if item.names]
    dependence = Dependence(graph, [item.variable.value for item in exposed])
    found: list[CacheForm] = []
    problems: list[NotACache] = []
    for item in exposed:
        try:
            found.append(_recognize(item, dependence))
        except NotACache as problem:
            problems.append(problem)
    growing = {form.past for form in found}
    unset = {item.variable.is_set for item in exposed if item.variable.value not in growing}
    inputs = Inputs(graph, {form.past: form.axis for form in found}, unset)
    caches: list[CacheForm] = []
    for form in found:
        try:
            form.check(inputs)
        except NotACache as problem:
            problems.append(problem)
        else:
            caches.append(form)
    return caches, inputs, problems


def detach(node: ir.Node) -> None:
    """Remove the uses of outer values by the nested graphs of a node that will be removed."""
    for graph in nested(node):
        graph.outputs.clear()
        for inner in all_nodes(graph):
            for index in range(len(inner.inputs)):
                inner.replace_input_with(index, None)


def _count_rows(node: ir.Node, data: ir.Value) -> None:
    node.replace_input_with(0, data)
    node.attributes.clear()
    node.attributes.update({"start": ir.AttrInt64("start", 0), "end": ir.AttrInt64("end", 1)})


@dataclass
class CacheForm:
    """A variable that is a cache in OpenVINO's form.

    Attributes:
        name: the name of the variable.
        past: the value before the run.
        is_set: whether ``past`` is valid; ``None`` if it always is.
        read: ``past`` or the initial value.
        chosen: the rows of ``read`` that ``beam_idx`` selects.
        present: ``chosen`` and ``new``, the keys or values of the new tokens, concatenated along ``axis``.
        initial: the initial shape, if it does not depend on ``is_set``.
    """

    name: str
    past: ir.Value
    is_set: ir.Value | None
    read: ir.Value
    chosen: ir.Value
    present: ir.Value
    new: ir.Value
    axis: int
    initial: tuple[int, ...]

    def check(self, inputs: Inputs) -> None:
        """Raise `NotACache` unless the variable is initially empty and ``beam_idx`` selects its rows."""
        dims = list(self.past.shape or ())
        probe_shapes = ProbeShapes(batch=3, sequence=2, past=4)
        shape = [3, *(d if isinstance(d, int) else 4 if i == self.axis else 2 for i, d in enumerate(dims) if i)]
        content = of_all_sizes(shape)
        rows = np.array([2, 0, 0], np.int32)
        with np.errstate(over="ignore"):  # in float16
            more = {self.read: content.astype(self.past.dtype.numpy())}  # type: ignore[union-attr]
        if inputs.beams is not None:
            more[inputs.beams] = rows
        try:
            chosen = inputs.probe(probe_shapes, more).array(self.chosen)
        except ProbeError as error:
            raise NotACache(f"the update of the variable {self.name} between runs is unknown: {error}") from error
        wanted = content if inputs.beams is None else content[rows]
        with np.errstate(over="ignore"):
            wanted = wanted.astype(chosen.dtype)
        if not np.array_equal(chosen, wanted) or not inputs.stays(probe_shapes, self.chosen, chosen, more):
            raise NotACache(f"{BEAMS} does not select the rows of the variable {self.name}")
        if not inputs.grows(probe_shapes, self.chosen, self.axis, past=True):
            raise NotACache(f"the variable {self.name} keeps only some of the past tokens")
        if self._first(inputs, probe_shapes)[self.axis] != 0:
            raise NotACache(f"the variable {self.name} is not empty before the first run")

    def _first(self, inputs: Inputs, probe_shapes: ProbeShapes) -> tuple[int, ...]:
        """Return the shape of the initial value."""
        if self.is_set is None:
            return self.initial
        try:
            content = np.ones(inputs.probe(probe_shapes).shape(self.past), self.past.dtype.numpy())  # type: ignore[union-attr]
            if not np.array_equal(inputs.probe(probe_shapes, {self.past: content}).array(self.read), content):
                raise NotACache(f"the variable {self.name} is changed after it is read")
            return inputs.probe(probe_shapes, {self.is_set: np.array(False)}).shape(self.read)
        except ProbeError as error:
            raise NotACache(f"the initial value of the variable {self.name} is unknown: {error}") from error

    def rewritten(self, graph: ir.Graph) -> Cache:
        if self.is_set is not None:
            graph.inputs.remove(self.is_set)
        # Concat must use the past itself, so the nodes between them are replaced.
        node = self.present.producer()
        assert node is not None
        node.replace_input_with(0, self.past)
        for value in (self.chosen, self.read):
            if value is not self.past and (value.uses() or value.is_graph_output()):
                replace_value(value, self.past, equal=False)
        if (choice := self.read.producer()) is not None:
            detach(choice)
        return Cache(self.name, self.past, self.present, self.new, self.axis)


def _recognize(item: ExposedVariable, dependence: Dependence) -> CacheForm:
    variable = item.variable
    past = variable.value
    present: ir.Value | None = variable.assigned
    assert present is not None
    node = present.producer()
    while node is not None and (node.op_type, node.domain) == ("Identity", ""):
        present = node.inputs[0]
        assert present is not None
        node = present.producer()
    if node is None or (node.op_type, node.domain) != ("Concat", "") or len(node.inputs) != 2:
        raise NotACache(f"the variable {variable.name} is not a cache: no Concat appends the keys or values of a run")
    chosen, new = node.inputs
    if chosen is None or new is None or past.shape is None or variable.assigned_is_set is not None:
        raise NotACache(f"the rank of the variable {variable.name} is unknown, or a branch assigns it")
    axis = node.attributes.get_int("axis", 0)
    axis += len(past.shape) if axis < 0 else 0
    dominators = dependence.dominators(chosen) if chosen in dependence else []
    if not dominators:
        raise NotACache(f"the keys or values of a run are not appended to the variable {variable.name}")
    initial = tuple(variable.initial.shape.numpy())
    return CacheForm(variable.name, past, variable.is_set, dominators[-1], chosen, present, new, axis, initial)


@dataclass
class _StateForm:
    """A variable of a fixed size in OpenVINO's form; the attributes are those of `CacheForm`."""

    name: str
    past: ir.Value
    is_set: ir.Value
    read: ir.Value
    chosen: ir.Value
    output: str

    def rewritten(self, graph: ir.Graph) -> FixedState:
        graph.inputs.remove(self.is_set)
        for value in (self.chosen, self.read):
            replace_value(value, self.past, equal=False)
        choice = self.read.producer()
        assert choice is not None
        detach(choice)
        present = next(value for value in graph.outputs if value.name == self.output)
        return FixedState(self.name, self.past, present)


def _state(item: ExposedVariable, inputs: Inputs) -> _StateForm | None:
    """Return the form of a variable of a fixed size that is zero at first, and whose rows ``beam_idx`` selects."""
    variable = item.variable
    past, is_set, beams = variable.value, variable.is_set, inputs.beams
    dims = list(past.shape or ())
    choices = [] if is_set is None else [node for node, _ in is_set.uses()]
    if is_set is None or beams is None or len(choices) != 1 or variable.assigned_is_set is not None:
        return None
    if len(dims) < 2 or not all(isinstance(size, int) for size in dims[1:]) or past.dtype != ir.DataType.FLOAT:
        return None
    read = choices[0].outputs[0]
    if choices[0].op_type != "If" or len(choices[0].outputs) != 1:
        return None
    shapes = ProbeShapes(batch=3, sequence=2, past=4)
    content = of_all_sizes([3, *(size for size in dims[1:] if isinstance(size, int))]).astype(np.float32)
    rows = np.array([2, 0, 0], np.int32)
    try:
        if not np.array_equal(inputs.probe(shapes, {is_set: np.array(False)}).array(read), np.zeros_like(content)):
            return None
        if not np.array_equal(inputs.probe(shapes, {is_set: np.array(True), past: content}).array(read), content):
            return None
        probe = inputs.probe(shapes, {read: content, beams: rows})
        chosen = _selected(read, lambda value: np.array_equal(probe.array(value), content[rows]))
    except ProbeError:
        return None
    return None if chosen is None else _StateForm(variable.name, past, is_set, read, chosen, item.names["output"])


def _selected(read: ir.Value, is_selected: Callable[[ir.Value], bool]) -> ir.Value | None:
    """Return the last value with the selected rows on the only path from a variable; its shape may have other uses."""
    chosen, current = None, read
    while True:
        users = list({node: None for node, _ in current.uses() if node.op_type != "Shape"})
        if len(users) != 1 or current.is_graph_output() or users[0].op_type not in ("Gather", "Where", "Identity"):
            return chosen
        current = users[0].outputs[0]
        if is_selected(current):
            chosen = current


def _check_beams(beams: ir.Value, chosen: Sequence[ir.Value]) -> None:
    """Raise `NotACache` if something other than the caches uses ``beam_idx``."""
    reached: set[ir.Value] = {beams}
    borders = set(chosen)
    pending = [beams]
    while pending:
        value = pending.pop()
        if value.is_graph_output():
            raise NotACache(f"{BEAMS} is used for more than the rows of the caches")
        for node, _ in value.uses():
            if node.op_type == "Shape" and not node.attributes:
                continue
            for output in node.outputs:
                if output not in reached and output not in borders:
                    reached.add(output)
                    pending.append(output)
