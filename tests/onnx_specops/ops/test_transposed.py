"""Operators of the domain between Transposes, by their bodies.

ONNX Runtime inlines bodies and moves Transposes past their nodes, whose kernels must support the other layouts. The results
are those of OpenVINO, or of the case's other source, in another order.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import helper

import onnx_specops
from converters.validation.ort_values import run_session
from tests.comparison import assert_close
from tests.conformance.oracle import Oracle
from tests.layout_orders import ORDERS, inverse, permutation
from tests.onnx_specops.ops.case import Case, answer
from tests.onnx_specops.ops.one_node import one_node
from tests.onnx_specops.ops.test_forms import CASES
from tests.processor import HAS_AVX512, SATURATES

_EVERY = 12


def _number(case: Case) -> int:
    return int.from_bytes(hashlib.sha256(case.id.encode()).digest()[:8])


def _sample() -> list[Case]:
    """Return one case of each operator that has a matrix or more, and one in `_EVERY` of all."""
    cases = [case for case in CASES if not case.error and any(array.ndim > 1 for array in case.inputs.values())]
    cases = [case for case in cases if HAS_AVX512 or not case.avx512]
    if SATURATES:  # without VNNI, ONNX Runtime's sums of bytes saturate for weights at run time
        cases = [case for case in cases if case.op != "QuantizedConv" or "W" in case.constants]
    first = {case.op: case for case in sorted(cases, key=_number, reverse=True)}
    return [case for case in cases if case is first[case.op] or not _number(case) % _EVERY]


def _between_transposes(case: Case, order: str, rank: int) -> tuple[onnx.ModelProto, dict[str, np.ndarray]]:
    """Return a model with Transposes around the case's node, whose output has a given rank, and its inputs."""
    model = one_node(case.op, case.inputs, case.attributes, case.constants)
    graph, feeds = model.graph, {}
    before, after = [], []
    for value in graph.input:
        name, array = value.name, case.inputs[value.name]
        if array.ndim > 1:
            perm = permutation(array.ndim, order)
            array = np.ascontiguousarray(np.transpose(array, inverse(perm)))
            before.append(helper.make_node("Transpose", [f"{name}_moved"], [name], perm=perm))
            name = f"{name}_moved"
        value.CopyFrom(helper.make_tensor_value_info(name, value.type.tensor_type.elem_type, array.shape))
        feeds[name] = array
    if rank > 1:
        output = graph.output[0]
        after.append(helper.make_node("Transpose", [output.name], ["moved"], perm=inverse(permutation(rank, order))))
        output.name = "moved"
    nodes = [*before, *graph.node, *after]
    del graph.node[:]
    graph.node.extend(nodes)
    return onnx_specops.add_bodies(model), feeds


@pytest.fixture(scope="module")
def oracle() -> Iterator[Oracle]:
    oracle = Oracle()
    yield oracle
    oracle.close()


@pytest.mark.parametrize("case", _sample(), ids=lambda case: case.id)
def test_bodies(case: Case, oracle: Oracle, tmp_path: Path) -> None:
    expected, order = answer(case, oracle, tmp_path), list(ORDERS)[_number(case) % len(ORDERS)]
    model, feeds = _between_transposes(case, order, expected.ndim)
    options = ort.SessionOptions()
    options.log_severity_level = 4
    session = onnx_specops.InferenceSession(model.SerializeToString(), options, kernels="none")
    got = np.asarray(run_session(session, feeds)[0])
    if expected.ndim > 1:
        expected = np.transpose(expected, inverse(permutation(expected.ndim, order)))
    if case.near and got.dtype.kind in "iu" and got.shape == expected.shape:
        distance = np.abs(got.astype(np.int64) - expected)
        if distance.size and distance.max() == 1 and (distance > 0).mean() <= case.near:
            return
    if case.oracle_type is not None:
        expected = expected.astype(got.dtype)
    assert_close(got, expected, case.rtol, case.atol, values=case.same_values, units=1)
