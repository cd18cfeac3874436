"""Caches that grow in place from run to run: the keys and values of a language model's past tokens."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnxruntime as ort

from onnx_specops.runtime.variables import TYPES, Variable, copied, inputs_of

_ROOM = 64
"""The minimum number of tokens for which memory is allocated."""

_SEQUENCE, _TOTAL = "sequence_length", "total_sequence_length"
"""The dimensions of inputs for the number of tokens in a run, and for the number including past tokens."""


class Shapes:
    """The shapes of variables. Their dimensions, except that of the tokens, follow from those of the model's inputs.

    Args:
        session: a session of the model. Dimensions of its inputs with the same name are equal.
        variables: its variables.
    """

    def __init__(self, session: ort.InferenceSession, variables: Sequence[Variable]) -> None:
        carried = {variable.input for variable in variables}
        described = {value.name: value for value in inputs_of(session)}
        self._shapes = {v.input: list(described[v.input].shape) for v in variables}
        self._types = {name: TYPES[described[name].type] for name in self._shapes}
        self._named = {name: list(value.shape) for name, value in described.items() if name not in carried}

    def sizes(self, feeds: Mapping[str, Any]) -> dict[Any, int]:
        """Return the values of the named dimensions of the inputs.

        Args:
            feeds: OrtValues, or arrays.
        """
        sizes: dict[Any, int] = {}
        for name, value in feeds.items():
            shape = value.shape() if isinstance(value, ort.OrtValue) else np.shape(value)
            for dim, size in zip(self._named.get(name, ()), shape, strict=False):
                if isinstance(dim, str) and sizes.setdefault(dim, size) != size:
                    raise ValueError(f"the dimension {dim} of {name} is {size}, but {sizes[dim]} in another input")
        return sizes

    def shape(self, variable: Variable, sizes: Mapping[Any, int], tokens: int) -> list[int]:
        """Return the shape of a variable with ``tokens`` tokens."""
        dims = [dim if isinstance(dim, int) else sizes.get(dim, 1) for dim in self._shapes[variable.input]]
        if variable.axis >= 0:
            dims[variable.axis] = tokens
        return dims

    def empty(self, variable: Variable, feeds: Mapping[str, Any]) -> np.ndarray:
        """Return a variable before the first run: without tokens, or zeros."""
        return np.zeros(self.shape(variable, self.sizes(feeds), 0), self.dtype(variable))

    def dtype(self, variable: Variable) -> Any:
        """Return the NumPy type of a variable."""
        return self._types[variable.input]

    def tellers(self, dim: str) -> list[str]:
        """Return the inputs that have a dimension."""
        return [name for name, dims in self._named.items() if dim in dims]

    def cut(self, feeds: Mapping[str, ort.OrtValue], dim: str, size: int) -> dict[str, ort.OrtValue]:
        """Return the inputs that have a dimension, cut to ``size`` along it; smaller inputs are omitted."""
        found = {}
        for name in self.tellers(dim):
            axis = self._named[name].index(dim)
            if name in feeds and feeds[name].shape()[axis] > size:
                found[name] = copied(feeds[name].numpy()[(slice(None),) * axis + (slice(0, size),)])
        return found


@dataclass(frozen=True)
class _Memory:
    """A block of memory, as a NumPy array and as an OrtValue."""

    array: np.ndarray
    value: ort.OrtValue

    @classmethod
    def of(cls, array: np.ndarray) -> _Memory:
        return cls(array, ort.OrtValue.ortvalue_from_numpy(array))


@dataclass(frozen=True)
class Step:
    """The inputs and outputs of a run for its caches. The caches are unchanged until `Caches.keep`.

    Attributes:
        inputs: the fed inputs.
        outputs: the memory for the new caches, by output name.
        memory: the same memory by input name.
        spare: the previous memory of the caches, which is used again when rows are reordered.
        tokens: the number of tokens after the run.
    """

    inputs: dict[str, ort.OrtValue] = field(default_factory=dict)
    outputs: dict[str, ort.OrtValue] = field(default_factory=dict)
    memory: dict[str, _Memory] = field(default_factory=dict)
    spare: dict[str, _Memory] = field(default_factory=dict)
    tokens: int = 0


@dataclass(frozen=True)
class Held:
    """The caches of a sequence of runs: the number of tokens, and memory by input name; see `Step`."""

    tokens: int
    memory: dict[str, _Memory]
    spare: dict[str, _Memory]


class Caches:
    """The caches of a session in memory with capacity for more tokens, so that runs extend them without a copy.

    A run that reorders rows (a beam search) writes into other memory; two blocks alternate.

    Args:
        shapes: the shapes of the caches.
        variables: the variables that are extended in place. Each run adds the same number of tokens to all.
    """

    def __init__(self, shapes: Shapes, variables: Sequence[Variable]) -> None:
        self._shapes = shapes
        self._variables = tuple(variables)
        self.inputs = tuple(variable.input for variable in variables)
        self.lengths = frozenset(variable.past_length for variable in variables if variable.past_length)
        self.reset()

    def reset(self) -> None:
        """Remove all tokens."""
        self._tokens = 0
        self._memory: dict[str, _Memory] = {}
        self._spare: dict[str, _Memory] = {}

    def swap(self, other: Held | None) -> Held:
        """Replace the caches, by none if ``other`` is ``None``, and return the previous ones."""
        held = Held(self._tokens, self._memory, self._spare)
        self._tokens, self._memory, self._spare = (0, {}, {}) if other is None else (other.tokens, other.memory, other.spare)
        return held

    def rows(self) -> set[int]:
        """Return the numbers of rows of the caches. All caches have the same number, so the set has at most one element."""
        return {len(memory.array) for memory in self._memory.values()}

    def select(self, rows: np.ndarray) -> None:
        """Keep these rows of all caches, in this order. Only the tokens of rows that change are copied."""
        for variable in self._variables:
            held = self._memory.get(variable.input)
            if held is None:
                continue
            index = (slice(None),) * variable.axis + (slice(0, self._tokens),)
            if len(rows) == len(held.array):
                moved = np.flatnonzero(rows != np.arange(len(rows)))
                filled = held.array[index]
                filled[moved] = filled[rows[moved]]
            else:
                memory = np.zeros([len(rows), *held.array.shape[1:]], held.array.dtype)
                memory[index] = held.array[index][rows]
                self._memory[variable.input] = _Memory.of(memory)

    def step(self, feeds: Mapping[str, ort.OrtValue]) -> Step:
        """Return the inputs and outputs of a run.

        Args:
            feeds: the caller's inputs. If a variable counts the past tokens and the number is lower, the rest is dropped.

        Raises:
            ValueError: the inputs do not determine the number of tokens in the run, or contradict each other.
        """
        if not self._variables:
            return Step()
        sizes = self._shapes.sizes(feeds)
        past, total = self._counted(feeds, sizes)
        cut: dict[str, ort.OrtValue] = {}
        if not self.lengths and _SEQUENCE in sizes and total > past + sizes[_SEQUENCE]:
            # The model uses the length of the attention_mask as the number of all tokens.
            total = past + sizes[_SEQUENCE]
            cut = self._shapes.cut(feeds, _TOTAL, total)
        counted = dict.fromkeys(self.lengths, ort.OrtValue.ortvalue_from_numpy(np.array(past)))
        step = Step({**counted, **cut}, spare=dict(self._spare), tokens=total)
        moved = {name: self._moved(name, feeds) for name in {v.beams for v in self._variables} & feeds.keys()}
        for variable in self._variables:
            name, held = variable.input, self._memory.get(variable.input)
            shape = self._shapes.shape(variable, sizes, 0 if held is None else held.array.shape[variable.axis])
            if held is None or not moved.get(variable.beams, False):
                before = after = self._with_room(variable, held, shape, past, total)
            else:
                rows = list(held.array.shape)
                before = self._with_room(variable, held, rows, past, total)
                shape[variable.axis] = before.array.shape[variable.axis]
                after = self._other(variable, shape)
                step.spare[name] = before
            step.inputs[name], step.outputs[variable.output], step.memory[name] = before.value, after.value, after
        return step

    def keep(self, step: Step) -> None:
        """Store the caches that a run produced."""
        self._memory, self._tokens = step.memory, step.tokens
        self._spare = {
            name: spare for name, spare in step.spare.items() if spare.array.shape == step.memory[name].array.shape
        }

    def cut(self, step: Step, output: str) -> ort.OrtValue:
        """Return a cache as an output of the run: a copy without the extra capacity."""
        variable = next(variable for variable in self._variables if variable.output == output)
        index = (slice(None),) * variable.axis + (slice(0, step.tokens),)
        return copied(step.memory[variable.input].array[index])

    def _counted(self, feeds: Mapping[str, ort.OrtValue], sizes: Mapping[Any, int]) -> tuple[int, int]:
        """Return the number of tokens before and after a run."""
        dim = _SEQUENCE if self.lengths else _TOTAL
        if dim not in sizes:
            tellers = " or ".join(self._shapes.tellers(dim)) or "attention_mask"
            raise ValueError(f"no input determines the number of tokens: pass {tellers}")
        if not self.lengths:
            return self._tokens, sizes[dim]
        past = self._tokens
        for name in self.lengths & feeds.keys():
            told = int(feeds[name].numpy().reshape(-1)[0])
            if told > self._tokens:
                raise ValueError(f"{name} is {told}, but the caches contain {self._tokens} tokens")
            past = told if told >= 0 else past
        return past, past + sizes[dim]

    def _moved(self, beams: str, feeds: Mapping[str, ort.OrtValue]) -> bool:
        """Whether a run reorders rows."""
        rows, held = feeds[beams].numpy(), next((len(memory.array) for memory in self._memory.values()), 0)
        if self._memory and rows.size and not -held <= rows.min() <= rows.max() < held:
            raise ValueError(f"{beams} selects a row outside the {held} rows of the previous run")
        return not np.array_equal(rows, np.arange(held))

    def _with_room(self, variable: Variable, held: _Memory | None, shape: list[int], past: int, total: int) -> _Memory:
        """Return memory of the given shape that contains the past tokens and has capacity for all."""
        room = 0 if held is None else held.array.shape[variable.axis]
        if held is not None and shape != list(held.array.shape):
            raise ValueError(
                f"the run has {shape[0]} rows, but the caches have {held.array.shape[0]}: call reset_state() first"
            )
        if held is not None and room >= total:
            return held
        # Capacity grows by half each time, so that at most three times the final size is copied in total.
        shape = list(shape)
        shape[variable.axis] = max(-(-total // _ROOM) * _ROOM, room + room // 2)
        memory = np.zeros(shape, self._shapes.dtype(variable))
        if held is not None:
            index = (slice(None),) * variable.axis + (slice(0, past),)
            memory[index] = held.array[index]
        return _Memory.of(memory)

    def _other(self, variable: Variable, shape: list[int]) -> _Memory:
        """Return memory with undefined content."""
        spare = self._spare.get(variable.input)
        if spare is not None and list(spare.array.shape) == shape:
            return spare
        return _Memory.of(np.empty(shape, self._shapes.dtype(variable)))
