"""The values of a session's variables, which are passed from one run to the next."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnxruntime as ort

from onnx_specops.runtime import caches
from onnx_specops.runtime.caches import Caches, Shapes, Step
from onnx_specops.runtime.variables import Variable, as_array, blanks_of, copied

Run = Callable[[Sequence[str], Mapping[str, Any], Mapping[str, ort.OrtValue]], Sequence[Any]]
"""One run of a session. The arguments are the names of the requested outputs, the inputs, and the memory for further outputs
by name. The result has the requested outputs.
"""


@dataclass(frozen=True)
class Held:
    """The values of the variables after a run."""

    values: dict[str, Any]
    caches: caches.Held


class State:
    """The values of the variables. There are none at first and after a reset; the model's initial values apply then.

    There are three kinds. Most variables are outputs of one run and inputs of the next. Growing variables that the kernels
    extend in place stay in separate memory (`Caches`). Variables that do not change once they are set are bound as input
    and output of each run, so that ONNX Runtime does not copy them.

    Args:
        session: a session of a model with variables.
        variables: the model's variables.
        native: whether the session has the domain's native kernels.
        arrays: whether runs take and return arrays instead of OrtValues, which Python cannot create of strings. Nothing is
            in place then.
    """

    def __init__(
        self, session: ort.InferenceSession, variables: Sequence[Variable], *, native: bool, arrays: bool = False
    ) -> None:
        self.variables = tuple(variables)
        self._blanks = blanks_of(session, variables)
        self._shapes = Shapes(session, variables)
        required = {value.name for value in ort.InferenceSession.get_inputs(session)}
        self._empty_first = [v for v in variables if v.axis >= 0 or (v.input in required and not v.is_set)]
        able = [] if arrays else [v for v in variables if v.in_place and (native or not v.native)]
        self._caches = Caches(self._shapes, [v for v in able if v.axis >= 0])
        self._kept = [v for v in able if v.axis < 0 and not v.is_set_output]
        apart = {*self._caches.inputs, *self._caches.lengths}
        self._links = {name: out for v in variables if v.input not in apart for name, out in v.links.items()}
        self._outputs = frozenset(self.outputs)
        lengths = {v.past_length for v in variables if v.past_length}
        others = [v.name for v in variables if v.axis < 0 and not v.in_place and v.input not in lengths]
        self._fixed = lengths if others else frozenset()
        self._values: dict[str, Any] = {}
        self._lock = threading.Lock()

    @property
    def outputs(self) -> list[str]:
        """The outputs of the variables."""
        return [output for variable in self.variables for output in variable.links.values()]

    @property
    def in_place(self) -> list[str]:
        """The inputs of the variables that stay in place from run to run."""
        return [*self._caches.inputs, *(variable.input for variable in self._kept)]

    def reset(self) -> None:
        """Clear all values."""
        with self._lock:
            self._values = {}
            self._caches.reset()

    def swap(self, other: Held | None) -> Held:
        """Replace all values, by none if ``other`` is ``None``, and return the previous ones."""
        with self._lock:
            held = Held(self._values, self._caches.swap(None if other is None else other.caches))
            self._values = {} if other is None else other.values
            return held

    def select_rows(self, rows: Sequence[int]) -> None:
        """Keep these rows of all variables, in this order.

        Raises:
            ValueError: a variable has no rows, or an input of the model selects them; or a row does not exist.
        """
        if taken := {v.beams for v in self.variables if v.beams}:
            raise ValueError(f"{min(taken)} selects the rows of the variables: pass it to run")
        chosen = np.asarray(rows, np.int64)
        with self._lock:
            held = self._caches.rows()
            values = {name: as_array(value) for name, value in self._values.items()}
            flat = [v.input for v in self.variables if v.axis == 0 or (v.input in values and values[v.input].ndim == 0)]
            if flat:
                raise ValueError(f"the variable {flat[0]} has no rows")
            counts = {*held, *(len(array) for array in values.values())}
            if chosen.size and counts and not 0 <= chosen.min() <= chosen.max() < min(counts):
                raise ValueError(f"the rows {chosen.tolist()} are not all among the {min(counts)} rows of the previous run")
            if counts != {len(chosen)} or (chosen != np.arange(len(chosen))).any():
                self._values = {
                    name: array[chosen] if array.dtype == object else copied(array[chosen]) for name, array in values.items()
                }
                self._caches.select(chosen)

    def run(self, run: Run, output_names: Sequence[str], feeds: Mapping[str, Any]) -> list[Any]:
        """Run once: feed the variables, store their new values, and return the requested outputs.

        Each run uses the values of the previous one. A failed run leaves them unchanged. If the caller feeds growing
        variables, their new values are returned on request and not stored. Any other variable that the caller feeds replaces
        its stored value.

        Raises:
            ValueError: the caller feeds the past length of growing variables but not all of them, or the inputs do not
                determine the number of tokens in the run.
        """
        if any(variable.axis >= 0 and variable.input in feeds for variable in self.variables):
            return list(run(output_names, {**self._blanks, **self._flags({}, feeds), **feeds}, {}))
        if not self._fixed.isdisjoint(feeds):
            raise ValueError(
                f"{min(self._fixed)} is passed, but not all variables of the model can return to an earlier number of tokens"
            )
        with self._lock:
            step = self._caches.step(feeds)
            held = {**self._blanks, **self._empty(feeds), **self._values, **step.inputs}
            memory = {v.output: self._values[v.input] for v in self._kept if v.input in self._values.keys() - feeds.keys()}
            asked = dict.fromkeys((*output_names, *self._links.values()))
            names = [name for name in asked if name not in memory and name not in step.outputs]
            fed = {**held, **self._flags(held, feeds), **feeds, **step.inputs}
            results = {**memory, **dict(zip(names, run(names, fed, {**memory, **step.outputs}), strict=True))}
            given = [self._given(name, step, results) for name in output_names]
            self._values = {name: results[output] for name, output in self._links.items()}
            self._caches.keep(step)
            return given

    def _given(self, name: str, step: Step, results: Mapping[str, Any]) -> Any:
        """Return an output to the caller. Outputs of variables are copied, because the session keeps them."""
        if name in step.outputs:
            return self._caches.cut(step, name)
        return _copy(results[name]) if name in self._outputs else results[name]

    def _empty(self, feeds: Mapping[str, Any]) -> dict[str, ort.OrtValue]:
        """Return the variables without an initial value as empty tensors or zeros, if they have no value yet."""
        first = [v for v in self._empty_first if v.input in self._links and v.input not in self._values]
        return {v.input: ort.OrtValue.ortvalue_from_numpy(self._shapes.empty(v, feeds)) for v in first}

    def _flags(self, held: Mapping[str, Any], feeds: Mapping[str, Any]) -> dict[str, ort.OrtValue]:
        """Return the flags that mark variables with a value as set, where the model has such inputs."""
        known = {*self._values, *self._caches.lengths}.intersection(held)
        told = {v.is_set for v in self.variables if v.input in feeds or (v.input in known and not v.is_set_output)}
        return {name: ort.OrtValue.ortvalue_from_numpy(np.array(True)) for name in told if name}


def _copy(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.copy()
    array = value.numpy()
    return value if array.dtype == object else copied(array)
