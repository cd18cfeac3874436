"""The variables of a stateful model, from its metadata: the inputs and outputs that pass them from one run to the next.

A variable with an ``axis`` grows along it from run to run, starting empty: the keys or values of a language model's past
tokens. If the model's operators extend it in place (``in_place``), its memory has extra capacity, so that no token is copied
twice. A variable without an axis that is ``in_place`` does not change after it is set, such as the keys and values that a
decoder computes from an encoder's output. A variable without an axis and without an ``is_set`` input, whose input is
required, is zero before the first run.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import onnxruntime as ort

METADATA_KEY = "onnx_specops.variables"

TYPES: dict[str, Any] = {
    "tensor(bool)": np.bool_,
    "tensor(double)": np.float64,
    "tensor(float)": np.float32,
    "tensor(float16)": np.float16,
    "tensor(string)": np.object_,
    **{f"tensor({sign}int{bits})": np.dtype(f"{sign}int{bits}").type for sign in ("", "u") for bits in (8, 16, 32, 64)},
}
"""The NumPy types of tensors by ONNX Runtime's names."""

GROWING_TYPES = frozenset(("tensor(double)", "tensor(float)", "tensor(float16)", "tensor(uint8)"))
"""The types that growing variables support."""


@dataclass(frozen=True)
class Variable:
    """A variable: its name, its input and output, and the input (if any) that states whether it is set.

    If a run may leave a variable unset, ``is_set_output`` states whether it was set; otherwise every run sets it.

    Attributes:
        axis: the axis along which it grows; -1 for a variable with an initial value.
        in_place: whether its input and output may share memory once it is set, with extra capacity if it grows.
        native: whether only the domain's native kernels extend it in place. Bodies copy it, and less without extra capacity.
        beams: the input (if any) with the row of the variable that each row of a run continues.
        past_length: the input with the number of tokens in the variable's memory; negative if it has no extra capacity.
            Without such an input, the attention_mask determines the number.
    """

    name: str
    input: str
    output: str
    is_set: str = ""
    is_set_output: str = ""
    axis: int = -1
    in_place: bool = False
    native: bool = False
    beams: str = ""
    past_length: str = ""

    @property
    def links(self) -> dict[str, str]:
        """Return which output provides the next value of each input."""
        return {self.input: self.output} | ({self.is_set: self.is_set_output} if self.is_set_output else {})


_FIELDS = {field.name: {"str": str, "int": int, "bool": bool}[str(field.type)] for field in fields(Variable)}
_REQUIRED = {"name", "input", "output"}


def parse_variables(text: str) -> tuple[Variable, ...]:
    """Parse the variables in a model's metadata; ``""`` has none.

    Raises:
        ValueError: the text is not a list of objects for `Variable`, as a conversion writes it.
    """
    if not text:
        return ()
    try:
        entries = json.loads(text)
    except (ValueError, RecursionError):
        raise _damaged("no JSON") from None
    if not isinstance(entries, list):
        raise _damaged("no list")
    for entry in entries:
        if not isinstance(entry, dict) or not _REQUIRED <= entry.keys() <= _FIELDS.keys():
            raise _damaged("entries that are not variables")
        for name, value in entry.items():
            if type(value) is not _FIELDS[name]:
                raise _damaged(f"a variable whose {name} is not of the type {_FIELDS[name].__name__}")
    variables = tuple(Variable(**entry) for entry in entries)
    if len({variable.input for variable in variables}) < len(variables):
        raise _damaged("two variables with the same input")
    return variables


def _damaged(what: str) -> ValueError:
    return ValueError(f"the model's metadata is damaged: {METADATA_KEY} contains {what}")


def variables_of(session: ort.InferenceSession) -> tuple[Variable, ...]:
    """Return the variables in the model's metadata, without those that lack inputs or outputs; the caller handles these.

    Raises:
        ValueError: the metadata is damaged or contradicts the model.
    """
    found = parse_variables(session.get_modelmeta().custom_metadata_map.get(METADATA_KEY, ""))
    fed = {value.name: value for value in inputs_of(session)}
    outputs = {value.name for value in ort.InferenceSession.get_outputs(session)}
    carried = {variable.input for variable in found}
    variables = []
    for variable in found:
        names = {*variable.links, *(name for name in (variable.is_set, variable.past_length) if name)}
        if not names <= fed.keys() or not set(variable.links.values()) <= outputs:
            continue
        value = fed[variable.input]
        if variable.axis != -1 and (
            not 0 <= variable.axis < len(value.shape)
            or isinstance(value.shape[variable.axis], int)
            or value.type not in GROWING_TYPES
        ):
            raise _damaged(f"a variable that cannot grow along axis {variable.axis} of {variable.input}")
        if variable.past_length and (
            variable.past_length not in carried or fed[variable.past_length].type != "tensor(int64)"
        ):
            raise _damaged(f"a number of tokens, {variable.past_length}, that is not an integer variable")
        variables.append(variable)
    return tuple(variables)


def inputs_of(session: ort.InferenceSession) -> list[Any]:
    """Return all inputs of a model; those with defaults are last."""
    return [*ort.InferenceSession.get_inputs(session), *session.get_overridable_initializers()]


def blanks_of(session: ort.InferenceSession, variables: Sequence[Variable]) -> dict[str, Any]:
    """Return the required inputs of variables for a first run: zeros, and flags for unset variables.

    Their shapes are the declared ones, with 0 for unknown dimensions. They are OrtValues, except strings.
    """
    required = {value.name: value for value in ort.InferenceSession.get_inputs(session)}
    blanks: dict[str, Any] = {}
    for name in [name for v in variables if v.is_set in required for name in (v.input, v.is_set)]:
        if required[name].type not in TYPES:
            raise _damaged(f"a variable of an input of the type {required[name].type}")
        dims = [dim if isinstance(dim, int) else 0 for dim in required[name].shape]
        blank = np.zeros(dims, TYPES[required[name].type])
        blanks[name] = blank if blank.dtype.kind == "O" else ort.OrtValue.ortvalue_from_numpy(blank)
    return blanks


def as_ort_value(value: Any, onnx_type: str | None = None) -> ort.OrtValue:
    """Return an input as an OrtValue. A list gets the type of the model's input (``"tensor(float)"``)."""
    if isinstance(value, ort.OrtValue):
        return value
    array = as_array(value, onnx_type)
    return ort.OrtValue.ortvalue_from_numpy(np.ascontiguousarray(array).reshape(array.shape))


def copied(array: np.ndarray) -> ort.OrtValue:
    """Copy an array into an OrtValue with its own memory, which outlives the array. Other OrtValues share the array's
    memory.
    """
    value = ort.OrtValue.ortvalue_from_shape_and_type(array.shape, array.dtype)
    value.update_inplace(np.ascontiguousarray(array))
    return value


def as_array(value: Any, onnx_type: str | None = None) -> np.ndarray:
    """Return an input as an array. A list gets the type of the model's input, as in ONNX Runtime."""
    if isinstance(value, ort.OrtValue):
        return value.numpy()
    return np.asarray(value, TYPES.get(onnx_type or "") if isinstance(value, list) else None)
