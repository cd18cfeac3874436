"""ONNX's backend node tests that OpenVINO reads and runs.

``openvino_runs.txt`` lists them. ``openvino_runs_constants.txt`` lists those that only run if all inputs except the first
are constants. ``python -m tests.conformance.onnx_roundtrip.list_cases`` writes both.
"""

from __future__ import annotations

import contextlib
import functools
import io
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import onnx

LISTS = {
    False: Path(__file__).with_name("openvino_runs.txt"),
    True: Path(__file__).with_name("openvino_runs_constants.txt"),
}
"""Whether inputs must be constants -> the names of the cases."""

# Random tests: each runtime draws its own numbers, so only shapes and types are compared.
RANDOM = {
    "test_bernoulli_seed": "samples with a seed, for which ONNX defines no generator",
    "test_bernoulli_double_expanded": "draws with no seed",
    "test_bernoulli_seed_expanded": "samples with a seed, for which ONNX defines no generator",
}


@dataclass(frozen=True)
class Departing:
    """A case in which OpenVINO's CPU plugin differs from its specification, which the conversion follows.

    Attributes:
        judge: the reference instead: ``"evaluate"``: ``Model.evaluate``; ``"onnx"``: the test's expected outputs; or the
            outputs that follow from the specification.
        reason: the difference.
    """

    judge: Literal["evaluate", "onnx"] | list[list[Any]]
    reason: str


_TRUNCATED = "Divide rounds down with m_pythondiv, which the IR asks for; the CPU plugin truncates"
_CLAMPED = "the CPU plugin converts f64 through its own f32 and makes infinities the largest finite number"
_HIDDEN = "without AVX-512, the CPU plugin gives queries that see no key other numbers in bf16"
_TIED = "TopK that is not stable: the CPU plugin's order of equal elements is its own"

PARTED = {
    "test_div_int32_trunc": Departing("evaluate", _TRUNCATED),
    "test_bitshift_right_int8_negative_input": Departing("onnx", _TRUNCATED),
    "test_bitshift_right_int32_negative_input": Departing("onnx", _TRUNCATED),
    "test_bitshift_right_int32_shift_ge_width": Departing("evaluate", _TRUNCATED),
    # [-8, 4, -1] times 2 to the powers 8, 9 and 127, which are 127, 127 and -128 in i8.
    "test_bitshift_right_int8_shift_ge_width": Departing([[-1, 0, 0]], _TRUNCATED),
    "test_cast_FLOAT_to_DOUBLE": Departing("evaluate", _CLAMPED),
    "test_cast_FLOAT16_to_DOUBLE": Departing("evaluate", _CLAMPED),
    "test_cast_DOUBLE_to_FLOAT": Departing("evaluate", _CLAMPED),
    "test_castlike_FLOAT_to_DOUBLE": Departing("onnx", _CLAMPED),
    "test_castlike_FLOAT16_to_DOUBLE": Departing("onnx", _CLAMPED),
    "test_castlike_DOUBLE_to_FLOAT": Departing("onnx", _CLAMPED),
    "test_castlike_FLOAT_to_DOUBLE_expanded": Departing("onnx", _CLAMPED),
    "test_castlike_FLOAT16_to_DOUBLE_expanded": Departing("onnx", _CLAMPED),
    "test_castlike_DOUBLE_to_FLOAT_expanded": Departing("onnx", _CLAMPED),
    "test_attention_4d_causal_padded_kv_bf16": Departing("onnx", _HIDDEN),
    "test_top_k_same_values": Departing("evaluate", _TIED),
    "test_top_k_same_values_2d": Departing("evaluate", _TIED),
    "test_top_k_same_values_largest": Departing("evaluate", _TIED),
    "test_tile": Departing("evaluate", "the CPU plugin does not write the result of Tile with run-time repeats"),
}

_COL2IM = "OpenVINO fails to infer the shape of Col2Im if the shape of the data is unknown"
_LENGTHS = "the number of the lengths is that of VariadicSplit's outputs"

# OpenVINO cannot write these with unknown dimensions.
KNOWN_DIMENSIONS = {
    "test_col2im": _COL2IM,
    "test_col2im_strides": _COL2IM,
    "test_col2im_pads": _COL2IM,
    "test_col2im_dilations": _COL2IM,
    "test_split_variable_parts_1d_opset13": _LENGTHS,
    "test_split_variable_parts_2d_opset13": _LENGTHS,
    "test_split_variable_parts_default_axis_opset13": _LENGTHS,
    "test_split_zero_size_splits_opset13": _LENGTHS,
    "test_split_variable_parts_1d_opset18": _LENGTHS,
    "test_split_variable_parts_2d_opset18": _LENGTHS,
    "test_split_variable_parts_default_axis_opset18": _LENGTHS,
    "test_split_zero_size_splits_opset18": _LENGTHS,
}


@functools.cache
def all_cases() -> dict[str, object]:
    """Return every backend node test of the installed onnx, by name."""
    from onnx.backend.test.case.node import collect_testcases

    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        cases = collect_testcases(None)
    return {case.name: case for case in cases}


@functools.cache
def listed(*, constants: bool = False) -> list[str]:
    """Return the names of the cases that OpenVINO reads and runs; with ``constants``, those that need constants."""
    return LISTS[constants].read_text().split() if LISTS[constants].is_file() else []


def model(case, *, constants: bool = False) -> bytes:
    """Return the case's model; with ``constants``, all inputs except the first are initializers."""
    proto = onnx.ModelProto()
    proto.CopyFrom(case.model)
    if constants:
        for name, array in list(inputs(case).items())[1:]:
            proto.graph.initializer.append(onnx.numpy_helper.from_array(array, name))
        del proto.graph.input[1:]
    return proto.SerializeToString()


def inputs(case) -> dict[str, np.ndarray]:
    """Return the inputs of the case's first data set, by name."""
    names = [info.name for info in case.model.graph.input]
    return {name: _array(value) for name, value in zip(names, case.data_sets[0][0], strict=True)}


def fed(arrays: dict[str, np.ndarray], names: list[str]) -> list[np.ndarray]:
    """Return the inputs for a model whose inputs OpenVINO calls ``names``: it drops unused ones, and may rename a single
    one.
    """
    if len(names) < len(arrays) and set(names) <= set(arrays):
        return [arrays[name] for name in names]
    return list(arrays.values())[: len(names)]


def outputs(case) -> list[np.ndarray]:
    """Return the outputs that the test expects for its first data set."""
    return [_array(value) for value in case.data_sets[0][1]]


def _array(value) -> np.ndarray:
    if isinstance(value, onnx.TensorProto):
        return onnx.numpy_helper.to_array(value)
    if isinstance(value, (list, dict)) or value is None:
        raise TypeError("sequences, maps and optionals are no tensors")
    return np.asarray(value)
