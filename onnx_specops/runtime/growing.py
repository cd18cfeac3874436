"""Variables that grow from run to run: the keys and values of a language model's past tokens."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import onnxruntime as ort

from onnx_specops.runtime.state import TYPES, Variable, inputs_of

_ROOM = 64
"""The least tokens that memory is got for at a time."""

_TOTAL = "total_sequence_length"
"""The dimension of an input that says how many tokens there are with those of the run."""


class Growing:
    """What the growing variables of a session hold; used like `State`.

    Args:
        session: the session; the sizes of its variables' other axes follow from those of its inputs, whose dimensions of
            one name are of one size.
        variables: its variables, all of which grow.
        native: whether it has the domain's native kernels.
    """

    def __init__(self, session: ort.InferenceSession, variables: Sequence[Variable], *, native: bool) -> None:
        self.variables = tuple(variables)
        self._session = session
        described = {value.name: value for value in inputs_of(session)}
        self._shapes = {variable.input: list(described[variable.input].shape) for variable in variables}
        self._types = {variable.input: TYPES[described[variable.input].type] for variable in variables}
        self._named = {name: list(value.shape) for name, value in described.items() if name not in self._shapes}
        self.in_place = all(variable.in_place and (native or not variable.native) for variable in variables)
        self._lock = threading.Lock()
        self.reset()

    @property
    def outputs(self) -> list[str]:
        """The outputs that carry the variables."""
        return [variable.output for variable in self.variables]

    def reset(self) -> None:
        """Forget what they hold."""
        with self._lock:
            self.tokens = 0
            self._memory: dict[str, np.ndarray] = {}
            self._values: dict[str, ort.OrtValue] = {}

    def run(
        self,
        run_with_ort_values: Callable[[list[str], dict[str, ort.OrtValue]], Sequence[ort.OrtValue]],
        run_bound: Callable[[ort.IOBinding], None],
        output_names: Sequence[str],
        feeds: Mapping[str, ort.OrtValue],
    ) -> list[ort.OrtValue]:
        """One run: feed what the variables hold, keep what they become, return the outputs asked for.

        A caller who feeds variables himself gets what he asks for, and nothing is kept.
        """
        if not self._shapes.keys().isdisjoint(feeds):
            return list(run_with_ort_values(list(output_names), dict(feeds)))
        with self._lock:
            sizes = self._sizes(feeds)
            if not self.in_place:
                results = run_with_ort_values([*output_names, *self.outputs], {**self._held(sizes), **feeds})
                kept = results[len(output_names) :]
                self._values = {v.input: value for v, value in zip(self.variables, kept, strict=True)}
            else:
                before = dict(self._memory), dict(self._values)
                try:
                    results = self._run_in_place(run_bound, output_names, self._with_own_rows(feeds), sizes)
                except BaseException:  # what its rows were counts again; what a run wrote lies behind its tokens
                    self._memory, self._values = before
                    raise
            self.tokens = sizes.get(_TOTAL, 0)
            return list(results[: len(output_names)])

    def _run_in_place(
        self,
        run_bound: Callable[[ort.IOBinding], None],
        output_names: Sequence[str],
        feeds: Mapping[str, ort.OrtValue],
        sizes: Mapping[Any, int],
    ) -> Sequence[ort.OrtValue]:
        if _TOTAL not in sizes:
            raise ValueError("no input tells how many tokens there are: feed the attention_mask")
        binding = self._session.io_binding()
        for variable in self.variables:
            self._make_room(variable, sizes)
            binding.bind_ortvalue_input(variable.input, self._values[variable.input])
        for name, value in feeds.items():
            binding.bind_ortvalue_input(name, value)
        for name in output_names:
            binding.bind_output(name)
        for variable in self.variables:
            binding.bind_ortvalue_output(variable.output, self._values[variable.input])
        run_bound(binding)
        return binding.get_outputs()

    def _with_own_rows(self, feeds: Mapping[str, ort.OrtValue]) -> Mapping[str, ort.OrtValue]:
        """The rows that a run goes on from become its own, in memory of their own; each run's row follows itself then."""
        own: dict[str, ort.OrtValue] = {}
        for beams in {variable.beams for variable in self.variables} & feeds.keys():
            rows = feeds[beams].numpy()
            if rows.ndim != 1:  # which the model's own check says
                continue
            follow = np.arange(len(rows), dtype=rows.dtype)
            for variable in self.variables:
                held = self._memory.get(variable.input)
                if variable.beams != beams or held is None or (len(rows) == len(held) and np.array_equal(rows, follow)):
                    continue
                if rows.size and not -len(held) <= rows.min() <= rows.max() < len(held):
                    raise ValueError(f"{beams} names a row that is not one of the {len(held)} before")
                self._memory[variable.input] = held[rows]
                self._values[variable.input] = ort.OrtValue.ortvalue_from_numpy(self._memory[variable.input])
                own[beams] = ort.OrtValue.ortvalue_from_numpy(follow)
        return {**feeds, **own}

    def _held(self, sizes: Mapping[Any, int]) -> dict[str, ort.OrtValue]:
        """The variables before a run: empty at first."""
        for variable in self.variables:
            if variable.input not in self._values:
                empty = np.zeros(self._shape(variable, sizes, 0), self._types[variable.input])
                self._values[variable.input] = ort.OrtValue.ortvalue_from_numpy(empty)
        return dict(self._values)

    def _shape(self, variable: Variable, sizes: Mapping[Any, int], tokens: int) -> list[int]:
        dims = [dim if isinstance(dim, int) else sizes.get(dim, 1) for dim in self._shapes[variable.input]]
        dims[variable.axis] = tokens
        return dims

    def _make_room(self, variable: Variable, sizes: Mapping[Any, int]) -> None:
        """Memory for as many tokens as there are after the run."""
        name, total, held = variable.input, sizes[_TOTAL], self._memory.get(variable.input)
        room = 0 if held is None else held.shape[variable.axis]
        shape = self._shape(variable, sizes, room)
        if held is not None and shape != list(held.shape):
            raise ValueError(f"{shape[0]} rows follow {held.shape[0]}: reset_state() begins anew")
        if held is not None and room >= total:
            return
        # Half as much again each time: all that is ever copied is three times what is held in the end.
        shape[variable.axis] = max(-(-total // _ROOM) * _ROOM, room + room // 2)
        memory = np.zeros(shape, self._types[name])
        if held is not None:
            index = (slice(None),) * variable.axis + (slice(0, self.tokens),)
            memory[index] = held[index]
        self._memory[name], self._values[name] = memory, ort.OrtValue.ortvalue_from_numpy(memory)

    def _sizes(self, feeds: Mapping[str, ort.OrtValue]) -> dict[Any, int]:
        """What the named dimensions of the inputs are."""
        sizes: dict[Any, int] = {}
        for name, value in feeds.items():
            for dim, size in zip(self._named.get(name, ()), value.shape(), strict=False):
                if isinstance(dim, str) and sizes.setdefault(dim, size) != size:
                    raise ValueError(f"the dimension {dim} of {name} is {size}, that of another input {sizes[dim]}")
        return sizes
