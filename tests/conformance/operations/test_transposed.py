"""Every operation with Transposes before its inputs and after its outputs.

ONNX Runtime moves Transposes past other nodes, also past those of bodies. Rules, bodies and passes must not depend on a
layout. All cases: ``pytest tests/conformance/operations/test_transposed.py --conformance=all``; a sample runs by default.
"""

from __future__ import annotations

import dataclasses
import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.conformance.case import Case, IRText
from tests.conformance.check import check, decide
from tests.conformance.operations.cases import CASES
from tests.conformance.oracle import Oracle
from tests.conformance.processors import depends_on_processor
from tests.layout_orders import ORDERS, inverse, permutation


@pytest.mark.conformance
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_operation(case: Case, oracle: Oracle, tmp_path: Path) -> None:
    if depends_on_processor(case.id):
        pytest.skip("OpenVINO gives another result on this processor")
    if isinstance(case.build(), IRText):
        pytest.skip("OpenVINO would change the layer of a text when it adds Transposes")
    number = int.from_bytes(hashlib.sha256(case.id.encode()).digest()[8:12])
    _check(case, list(ORDERS)[number % len(ORDERS)], oracle, tmp_path)


@pytest.mark.parametrize("order", list(ORDERS))
@pytest.mark.parametrize(
    "name",
    [
        "Interpolate-11-linear-of-channels-first-7x3",  # the product of two Transposes was moved
        "Interpolate-11-linear_onnx-of-channels-first-3x2",
        "Constant-1-string",  # Transposes of strings were folded
        "Constant-1-string-large",
    ],
)
def test_failures(name: str, order: str, oracle: Oracle, tmp_path: Path) -> None:
    """Cases that failed."""
    _check(next(case for case in CASES if case.id == name), order, oracle, tmp_path)


def _check(case: Case, order: str, oracle: Oracle, folder: Path) -> None:
    names = {"both": ("cpu", "evaluate"), "expected": ()}.get(case.oracle, (case.oracle,))
    runs = [list(arrays) for arrays in case.inputs]
    expected = decide(case, oracle.run(case.save(folder), runs, state=case.state, names=names))
    _, before, after = _transposed(case, order)
    moved = dataclasses.replace(
        case,
        build=lambda: _transposed(case, order)[0],
        inputs=[[_moved(array, perm) for array, perm in zip(run, before, strict=True)] for run in runs],
        oracle="expected",
        reason="the results without Transposes, in another order",
        expected=[[_moved(array, perm) for array, perm in zip(run, after, strict=True)] for run in expected],
    )
    check(moved, oracle, folder)


def _transposed(case: Case, order: str) -> tuple[Any, list[list[int] | None], list[list[int] | None]]:
    """Return the case's model with Transposes, and the permutations of its new inputs and outputs."""
    import openvino as ov
    from openvino import opset1

    model = case.build()
    before: list[list[int] | None] = []
    for index, parameter in enumerate(list(model.get_parameters())):
        shape = parameter.get_partial_shape()
        perm = _permutation(shape, order)
        before.append(None if perm is None else inverse(perm))
        if perm is not None:
            dims = ov.PartialShape([shape[axis] for axis in inverse(perm)])
            new = opset1.parameter(dims, parameter.get_element_type())
            parameter.output(0).replace(opset1.transpose(new, np.array(perm)).output(0))
            model.replace_parameter(index, new)
    after: list[list[int] | None] = []
    for result in model.get_results():
        source = result.input_value(0)
        perm = _permutation(source.get_partial_shape(), order)
        after.append(None if perm is None else inverse(perm))
        if perm is not None:
            result.input(0).replace_source_output(opset1.transpose(source, np.array(inverse(perm))).output(0))
    model.validate_nodes_and_infer_types()
    return model, before, after


def _permutation(shape: Any, order: str) -> list[int] | None:
    if shape.rank.is_dynamic or (rank := shape.rank.get_length()) < 2:
        return None
    return permutation(rank, order)


def _moved(array: np.ndarray, perm: list[int] | None) -> np.ndarray:
    return array if perm is None else np.ascontiguousarray(np.transpose(array, perm))
