"""The bodies of ONNX Runtime's own operators agree with its kernels."""

from __future__ import annotations

import numpy as np
import onnx
import onnx.inliner
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.capi import onnxruntime_pybind11_state as state

from onnx_specops import add_bodies
from onnx_specops.domain import CONTRIB_DOMAIN, Declaration, declared, find_declaration
from onnx_specops.runtime.reference import reference_evaluator
from tests.onnx_specops.contrib.cases import CASES, Case

CPU = ["CPUExecutionProvider"]


def model_of(case: Case) -> onnx.ModelProto:
    """Return the case's node as a model, with its body."""
    operator = find_declaration(CONTRIB_DOMAIN, case.op)
    assert operator is not None
    outputs = case.outputs or list(operator.outputs)[: len(operator.outputs) - operator.optional_outputs]
    given = [name for name in operator.inputs if name in case.inputs]
    node = helper.make_node(
        case.op,
        [name if name in given else "" for name in list(operator.inputs)[: list(operator.inputs).index(given[-1]) + 1]],
        outputs,
        domain=CONTRIB_DOMAIN,
        **case.attributes,
    )
    graph = helper.make_graph(
        [node],
        case.op,
        [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), [None] * array.ndim)
            for name, array in case.inputs.items()
            if name not in case.constants
        ],
        [onnx.ValueInfoProto(name=name) for name in outputs if name],
        [numpy_helper.from_array(np.asarray(case.inputs[name]), name) for name in case.constants],
    )
    for info in graph.output:
        info.type.tensor_type.elem_type = _output_type(operator, case, info.name)
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid(CONTRIB_DOMAIN, 1)]
    return add_bodies(helper.make_model(graph, opset_imports=opsets, ir_version=10))


def _output_type(operator: Declaration, case: Case, output: str) -> int:
    variable = operator.outputs[output]
    for name, type_ in operator.inputs.items():
        if type_ == variable and name in case.inputs:
            return helper.np_dtype_to_tensor_dtype(case.inputs[name].dtype)
    return getattr(TensorProto, operator.element_types(variable)[0].upper())


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_bodies_agree_with_kernels(case: Case) -> None:
    model = model_of(case)
    onnx.checker.check_model(model, full_check=True)
    feeds = {name: array for name, array in case.inputs.items() if name not in case.constants}
    kernel = ort.InferenceSession(model.SerializeToString(), providers=CPU).run(None, feeds)
    inlined = onnx.inliner.inline_local_functions(model)
    assert not inlined.functions and not any(node.domain for node in inlined.graph.node)
    body = ort.InferenceSession(inlined.SerializeToString(), providers=CPU).run(None, feeds)
    reference = reference_evaluator(model).run(None, feeds)
    for results in (body, reference):
        for wanted, got in zip(kernel, results, strict=True):
            assert got.dtype == wanted.dtype and got.shape == wanted.shape
            if wanted.dtype.kind == "f":
                np.testing.assert_allclose(got, wanted, rtol=case.rtol, atol=case.atol)
            else:
                np.testing.assert_array_equal(got, wanted)


def test_every_operator_has_a_case() -> None:
    assert {operator.name for operator in declared(CONTRIB_DOMAIN)} == {case.op for case in CASES}
    assert len({case.id for case in CASES}) == len(CASES)


@pytest.mark.parametrize("operator", list(declared(CONTRIB_DOMAIN)), ids=lambda operator: operator.name)
def test_declarations_agree_with_onnxruntime(operator: Declaration) -> None:
    schemas = {schema.name: schema for schema in state.get_all_operator_schema() if schema.domain == CONTRIB_DOMAIN}
    theirs = schemas[operator.name]
    assert list(operator.inputs) == [formal.name for formal in theirs.inputs][: len(operator.inputs)]
    assert list(operator.outputs) == [formal.name for formal in theirs.outputs][: len(operator.outputs)]
    for formals, mine in ((theirs.inputs, operator.inputs), (theirs.outputs, operator.outputs)):
        assert [formal.typeStr for formal in formals][: len(mine)] == list(mine.values())
    allowed = {constraint.type_param_str: set(constraint.allowed_type_strs) for constraint in theirs.type_constraints}
    for variable, types in operator.types.items():
        assert {f"tensor({name})" for name in types} <= allowed[variable]
    assert set(operator.attributes) <= set(theirs.attributes)
