"""Every operation of OpenVINO's opsets against OpenVINO itself.

All cases: ``pytest tests/conformance/operations --conformance=all``; a sample runs by default, with one of each operation.
    ``--opset=13`` converts them at that opset, ``--target=standard`` for that target.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conformance.check import check
from tests.conformance.operations.cases import CASES
from tests.conformance.opsets import check_at
from tests.conformance.oracle import Oracle
from tests.conformance.processors import OPERATIONS_OF_AVX512, OPERATIONS_OF_VNNI, depends_on_processor


def test_case_names_are_unique():
    names = [case.id for case in CASES]
    assert len(names) == len(set(names)), sorted({name for name in names if names.count(name) > 1})
    assert set(names) >= OPERATIONS_OF_AVX512 | OPERATIONS_OF_VNNI


@pytest.mark.conformance
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_operation(case, oracle: Oracle, tmp_path: Path, pytestconfig: pytest.Config):
    if depends_on_processor(case.id):
        pytest.skip("OpenVINO gives another result on this processor")
    opset = pytestconfig.getoption("--opset")
    target = pytestconfig.getoption("--target")
    if opset is None and target == "onnxruntime":
        check(case, oracle, tmp_path)
    else:
        check_at(opset, case, oracle, tmp_path, target)


@pytest.mark.parametrize(
    "name", ["Constant-1-f16-scalar", "Constant-1-string", "Parameter-1-bf16", "SegmentMax-16-float16-LOWEST"]
)
def test_standard(name: str, oracle: Oracle, tmp_path: Path):
    """Operations that failed for the target only: a scalar, strings, bfloat16 inputs, a body that depends on its type."""
    check_at(None, next(case for case in CASES if case.id == name), oracle, tmp_path, "standard")


@pytest.mark.parametrize(
    ("name", "target"),
    [
        *(
            (name, "tvm")
            for name in (
                "LSTMSequence-5-bidirectional", "LSTMCell-1-peepholes", "GRUSequence-5-reverse",
                "RNNSequence-5-forward-clip", "GRUSequence-5-linear-before-reset-bidirectional",
                "GRUSequence-5-run-time-weights", "EmbeddingBagOffsetsSum-3-weights",
            )
        ),
        ("TensorIterator-1-nested", "tinygrad"),  # with shapes that TVM does not compute
        ("Loop-5-joined-of-any-rank-axis1", "tinygrad"),
    ],
)  # fmt: skip
def test_without_control_flow(name: str, target: str, oracle: Oracle, tmp_path: Path):
    """Recurrent layers, Loops and bags of embeddings for a target that has none of them."""
    try:
        check_at(None, next(case for case in CASES if case.id == name), oracle, tmp_path, target)
    except pytest.skip.Exception as skipped:
        pytest.fail(str(skipped))
