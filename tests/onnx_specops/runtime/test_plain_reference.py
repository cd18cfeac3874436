"""Bodies in onnx's unmodified reference evaluator, against ONNX Runtime."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

import onnx_specops
from onnx_specops.domain import operators
from onnx_specops.runtime.reference import reference_evaluator
from tests.comparison import assert_close
from tests.fuzz.nodes import makers
from tests.onnx_specops.native import nodes
from tests.processor import SATURATES

NODES = 4
EVALUATOR = {
    # operator: (the evaluator's exception, the defect)
    "RandomUniform": ("'shape' is expected", "treats a node of any domain as ONNX's operator of that name"),
    "NonMaxSuppression": ("need at least one array", "a Loop without iterations has no scan outputs"),
    "GatherTree": ("need at least one array", "a Loop without iterations has no scan outputs"),
    "*": ("at most 64 array objects|cannot reshape array of size .* into shape", "GatherElements by numpy.choose"),
}
"""Operators that onnx 1.23's evaluator cannot run, with the defect, which no body can avoid."""
OTHER_NUMBERS = {"Multinomial", "RandomUniform"}
"""Operators whose bodies draw random numbers, which differ between runtimes."""
BODILESS = {operator.name for operator in operators() if operator.emit_body is None}


def _by_operator() -> dict[str, list[Callable[[np.random.Generator], nodes.Node]]]:
    found: dict[str, list[Callable[[np.random.Generator], nodes.Node]]] = {}
    for make in makers():
        found.setdefault(make(np.random.default_rng(0))[0], []).append(make)
    return found


MAKERS = {name: makers for name, makers in _by_operator().items() if name not in BODILESS}


def test_every_operator_with_a_body_is_tested() -> None:
    assert set(MAKERS) == {operator.name for operator in operators()} - BODILESS


@pytest.mark.parametrize("name", sorted(MAKERS))
def test_bodies(name: str) -> None:
    if SATURATES and name == "QuantizedConv":
        pytest.skip("without VNNI, ONNX Runtime's sums saturate for weights at run time")
    rng = np.random.default_rng(5)
    compared = 0
    for make in MAKERS[name]:
        for _ in range(NODES):
            _, arrays, types, attributes = make(rng)
            if name == "VocabularyTable":
                attributes = {**attributes, "num_oov_buckets": 1}  # more buckets have no body
            # Kernels accept an empty tensor for an omitted input at run time; bodies are created for one or the other.
            arrays = [None if a is None or (a.size == 0 and a.ndim == 1) else a for a in arrays]
            try:
                expected = nodes.run_body(name, arrays, types, attributes)
            except Exception:  # the node's attributes exceed its limits
                continue
            proto = onnx_specops.add_bodies(onnx.load_from_string(nodes.model(name, arrays, types, attributes)))
            feeds = {f"i{place}": array for place, array in enumerate(arrays) if array is not None}
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", RuntimeWarning)  # NumPy's warnings about overflow and NaN
                    got = ReferenceEvaluator(proto).run(None, feeds)
            except Exception as error:
                known = [EVALUATOR[key][0] for key in (name, "*") if key in EVALUATOR]
                assert any(re.search(message, str(error)) for message in known), error
                continue
            compared += 1
            for one, other in zip(got, expected, strict=True):
                coarse = other.dtype.itemsize <= 2
                same = name not in OTHER_NUMBERS
                assert_close(np.asarray(one), other, 3e-2 if coarse else 1e-3, 3e-2 if coarse else 1e-4, values=same)
    assert compared or name == "RandomUniform"


def _model(nodes: list[onnx.NodeProto], inputs: dict[str, int], outputs: list[str]) -> onnx.ModelProto:
    graph = helper.make_graph(
        nodes,
        "plain",
        [helper.make_tensor_value_info(name, type_, None) for name, type_ in inputs.items()],
        [onnx.ValueInfoProto(name=name) for name in outputs],
    )
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid(onnx_specops.DOMAIN, onnx_specops.OPSET_VERSION)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def test_nodes_with_and_without_omitted_inputs() -> None:
    """Two bodies of one operator, and the dispatcher."""
    domain = {"domain": onnx_specops.DOMAIN}
    both = [
        helper.make_node("SegmentMax", ["x", "ids"], ["a"], fill_mode="ZERO", **domain),
        helper.make_node("SegmentMax", ["x", "ids", "count"], ["b"], fill_mode="ZERO", **domain),
    ]
    inputs = {"x": TensorProto.FLOAT, "ids": TensorProto.INT64, "count": TensorProto.INT64}
    feeds = {"x": np.float32([1, 5, 3]), "ids": np.int64([0, 0, 2]), "count": np.int64(4)}
    for given in ([both[0]], [both[1]], both, both[::-1]):
        names = [name for node in given for name in node.output]
        used = {name for node in given for name in node.input}
        proto = onnx_specops.add_bodies(_model(given, {k: v for k, v in inputs.items() if k in used}, names))
        got = dict(zip(names, ReferenceEvaluator(proto).run(names, {k: feeds[k] for k in used}), strict=True))
        assert {name: values.tolist() for name, values in got.items()} == {
            name: values for name, values in {"a": [5, 0, 3], "b": [5, 0, 3, 0]}.items() if name in names
        }


@pytest.mark.parametrize("shape", [(70,), (3, 70), (70, 3), (2, 70, 2)])
def test_gather_elements_along_axes_of_any_length(shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    axis = shape.index(70)
    data = rng.standard_normal(shape).astype(np.float32)
    for size in (1, 5, 100):
        indices = rng.integers(-70, 70, [size if index == axis else d for index, d in enumerate(shape)])
        node = helper.make_node("GatherElements", ["x", "i"], ["y"], axis=axis - len(shape))
        proto = _model([node], {"x": TensorProto.FLOAT, "i": TensorProto.INT64}, ["y"])
        (got,) = reference_evaluator(proto).run(None, {"x": data, "i": indices})
        np.testing.assert_array_equal(got, np.take_along_axis(data, indices, axis))
