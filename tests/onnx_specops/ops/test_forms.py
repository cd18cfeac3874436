"""Every operator's cases in every form: NumPy, native, Python, body in ONNX Runtime, body in ONNX's reference evaluator."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest

import onnx_specops
from converters.validation.ort_values import run_session
from onnx_specops.domain import find
from onnx_specops.runtime.reference import reference_evaluator
from tests.comparison import assert_close
from tests.conformance.oracle import Oracle
from tests.native import REGISTERED
from tests.onnx_specops.ops import (
    cases_attention,
    cases_color,
    cases_depthwise_conv,
    cases_elementwise,
    cases_embedding_bag_offsets_sum,
    cases_interpolate,
    cases_multinomial,
    cases_numbers,
    cases_quantization,
    cases_quantized_attention,
    cases_quantized_conv,
    cases_quantized_layer_normalization,
    cases_scatter_elements_update,
    cases_searching,
    cases_volume_conv,
)
from tests.onnx_specops.ops.case import Case, answer
from tests.onnx_specops.ops.one_node import RAISED, one_node
from tests.processor import HAS_AVX512, SATURATES

CASES = [
    *cases_elementwise.CASES,
    *cases_embedding_bag_offsets_sum.CASES,
    *cases_scatter_elements_update.CASES,
    *cases_multinomial.CASES,
    *cases_searching.CASES,
    *cases_numbers.CASES,
    *cases_quantization.CASES,
    *cases_quantized_attention.CASES,
    *cases_quantized_conv.CASES,
    *cases_quantized_layer_normalization.CASES,
    *cases_interpolate.CASES,
    *cases_color.CASES,
    *cases_attention.CASES,
    *cases_depthwise_conv.CASES,
    *cases_volume_conv.CASES,
]
FORMS = ["numpy", "native", "python", "body", "reference"]
VALUES = [(case, form) for case in CASES if not case.error for form in FORMS if form != "native" or case.op in REGISTERED]
ERRORS = [(case, form) for case in CASES if case.error for form in FORMS if form != "native" or case.op in REGISTERED]


@pytest.fixture(scope="module")
def oracle() -> Iterator[Oracle]:
    oracle = Oracle()
    yield oracle
    oracle.close()


@pytest.fixture(scope="module")
def answers() -> dict[str, np.ndarray]:
    return {}


def run(form: str, case: Case) -> np.ndarray:
    operator = find(case.op)
    if form == "numpy":
        arrays = [
            None if array is None or (optional and array.size == 0) else array
            for array, optional in zip(map(case.inputs.get, operator.inputs), operator.optional, strict=True)
        ]
        return operator(*arrays, **operator.node_attributes(case.attributes))
    constants = case.constants if form in ("body", "reference") else ()
    model = one_node(case.op, case.inputs, case.attributes, constants)
    if form in ("body", "reference"):
        model = onnx_specops.add_bodies(model)
        onnx.checker.check_model(model, full_check=True)
    feeds = {name: array for name, array in case.inputs.items() if name not in constants}
    if form == "reference":
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # NumPy's warnings about overflow
            return np.asarray(reference_evaluator(model).run(None, feeds)[0])
    options = ort.SessionOptions()
    options.log_severity_level = 4
    kernels = "none" if form == "body" else form
    session = onnx_specops.InferenceSession(model.SerializeToString(), options, kernels=kernels)
    return run_session(session, feeds)[0]


@pytest.mark.parametrize(("case", "form"), VALUES, ids=[f"{case.id}-{form}" for case, form in VALUES])
def test_values(case: Case, form: str, oracle: Oracle, answers: dict[str, np.ndarray], tmp_path: Path) -> None:
    if case.avx512 and not HAS_AVX512:
        pytest.skip("OpenVINO's result differs without AVX-512")
    if SATURATES and form == "body" and case.op == "QuantizedConv" and "W" not in case.constants:
        pytest.skip("without VNNI, ONNX Runtime's sums saturate for weights at run time")
    if case.id not in answers:
        answers[case.id] = answer(case, oracle, tmp_path)
    expected = answers[case.id]
    got = run(form, case)
    if case.near and form in ("body", "reference") and got.dtype.kind in "iu" and got.shape == expected.shape:
        distance = np.abs(got.astype(np.int64) - expected)
        if distance.size and distance.max() == 1 and (distance > 0).mean() <= case.near:
            return
    if case.oracle_type is not None:
        expected = expected.astype(got.dtype)
    same = case.same_values or form not in ("body", "reference")
    assert_close(np.asarray(got), expected, case.rtol, case.atol, values=same, units=1)


@pytest.mark.parametrize(("case", "form"), ERRORS, ids=[f"{case.id}-{form}" for case, form in ERRORS])
def test_errors(case: Case, form: str) -> None:
    message = {"body": case.body_error or case.op, "reference": None}.get(form, f"{case.op}: {case.error}")
    with pytest.raises(RAISED[form], match=message):
        run(form, case)


@pytest.mark.parametrize("form", ["body", "reference"])
@pytest.mark.parametrize(
    "name",
    [
        "EmbeddingBagOffsetsSum-example-1",
        "EmbeddingBagOffsetsSum-no-default-no-weights",
        "EmbeddingBagOffsetsSum-type-float16",
        "EmbeddingBagOffsetsSum-rank-4",
        "ScatterElementsUpdate-example-1",
        "ScatterElementsUpdate-example-6-mean",
        "ScatterElementsUpdate-mean-no-init-uint8-int64",
        "Multinomial-facts",
        "Multinomial-facts-without-replacement",
        "SearchSorted-left-float32",
        "SearchSorted-right-one-sequence",
        "SegmentMax-lowest",
        "SegmentMax-rank-3",
        "GatherTree-batches",
        "Inverse-batches",
        "Attention-sizes",
        "Attention-shared-keys-mask",
        "QuantizedAttention-sizes",
        "QuantizedAttention-shared-keys-mask",
    ],
)
def test_bodies_of_unknown_rank(
    name: str, form: str, oracle: Oracle, answers: dict[str, np.ndarray], tmp_path: Path
) -> None:
    """The rank is unknown when the body is created."""
    case = next(case for case in CASES if case.id == name)
    if case.id not in answers:
        answers[case.id] = answer(case, oracle, tmp_path)
    model = one_node(case.op, case.inputs, case.attributes)
    for value in model.graph.input:
        value.type.tensor_type.ClearField("shape")
    model = onnx_specops.add_bodies(model)
    if form == "body":
        got = run_session(onnx_specops.InferenceSession(model.SerializeToString(), kernels="none"), case.inputs)[0]
    else:
        got = np.asarray(reference_evaluator(model).run(None, dict(case.inputs))[0])
    assert_close(got, answers[case.id], case.rtol, case.atol, values=case.same_values, units=1)


def test_ids_are_unique() -> None:
    ids = [case.id for case in CASES]
    assert len(ids) == len(set(ids))
