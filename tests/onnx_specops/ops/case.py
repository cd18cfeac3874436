"""Test cases of operators, and the oracles' results."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tests.conformance.operation_models import layer_case, statics
from tests.conformance.oracle import Oracle, OracleError

Arrays = Mapping[str, np.ndarray]

STORED = "ONNX_SPECOPS_TEST_ANSWERS"
"""The environment variable that names a folder in which results are stored, for processors on which OpenVINO has others."""


@dataclass(frozen=True)
class Case:
    """A node of the domain with its inputs, which is run in every form.

    Attributes:
        op: the operator's name.
        name: a description, unique within the operator.
        inputs: the inputs by name, in order; the node omits missing ones.
        attributes: the node's attributes.
        constants: inputs that are constants of the graph when bodies run.
        layer: builds OpenVINO's node: ``layer(*nodes, **attributes)``.
        expected: the result, if it is not OpenVINO's: an array from a specification, or a function of the inputs that calls
            another library.
        source: the oracle: OpenVINO's CPU plugin (``"cpu"``) or its reference kernels (``"evaluate"``).
        reason: why ``expected`` or the reference kernels replace the CPU plugin.
        avx512: whether OpenVINO only gives the result on processors with AVX-512.
        oracle_type: the element type for OpenVINO, if it does not support the case's own.
        error: a regular expression for the kernels' error message; bodies must fail with any message.
        body_error: a regular expression for ONNX Runtime's message about the body; "" for any that names the operator.
        same_values: false if the body draws different random numbers than the kernels; only shapes and types are compared.
        rtol, atol: tolerances of floats.
        near: the fraction of a body's integers that may be off by 1.
    """

    op: str
    name: str
    inputs: Arrays
    attributes: Mapping[str, Any] = field(default_factory=dict)
    constants: Sequence[str] = ()
    layer: Callable[..., Any] | None = None
    expected: np.ndarray | Callable[..., np.ndarray] | None = None
    source: str = "cpu"
    reason: str = ""
    avx512: bool = False
    oracle_type: Any = None
    error: str = ""
    body_error: str = ""
    same_values: bool = True
    rtol: float = 1e-5
    atol: float = 1e-6
    near: float = 0.0

    def __post_init__(self) -> None:
        if bool(self.reason) != (self.expected is not None or self.source != "cpu"):
            raise ValueError(f"{self.id}: a reason belongs to a case that the CPU plugin does not decide, and to no other")

    @property
    def id(self) -> str:
        return f"{self.op}-{self.name}"


def answer(case: Case, oracle: Oracle, folder: Path) -> np.ndarray:
    """Return the result of OpenVINO's CPU plugin, or of the case's other source; the stored one if there is one."""
    if case.expected is not None:
        return case.expected(**case.inputs) if callable(case.expected) else case.expected
    if STORED not in os.environ:
        return _computed(case, oracle, folder)
    file = Path(os.environ[STORED], f"{case.id}.pickle")
    if not file.is_file():
        file.write_bytes(pickle.dumps(_computed(case, oracle, folder)))
    return pickle.loads(file.read_bytes())


def _computed(case: Case, oracle: Oracle, folder: Path) -> np.ndarray:
    path = folder / "model.xml"
    arrays = {name: _for_oracle(case, array) for name, array in case.inputs.items()}
    save(case, arrays, path)
    given = oracle.run(path, [list(arrays.values())])[case.source]
    assert not isinstance(given, OracleError), f"the oracle failed: {given}"
    return given[0][0]


def _for_oracle(case: Case, array: np.ndarray) -> np.ndarray:
    if case.oracle_type is None or array.dtype in (np.int32, np.int64):
        return array
    return array.astype(case.oracle_type)


def save(case: Case, arrays: Arrays, path: Path) -> None:
    """Save the OpenVINO model of the case's layer, with the inputs ``arrays`` as Parameters."""
    layer = case.layer
    assert layer is not None
    attributes = dict(case.attributes)
    layer_case(case.op, "opset1", lambda ops, *nodes: layer(*nodes, **attributes), case.name, statics(arrays.values())).save(
        path.parent
    )
