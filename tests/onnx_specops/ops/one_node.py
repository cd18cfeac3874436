"""Models of one node of the domain, run in each form of the operator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from onnxruntime.capi import onnxruntime_pybind11_state as state

import onnx_specops
from onnx_specops.bodies import add_bodies
from onnx_specops.domain import find

KERNELS = ("numpy", "native", "python")
BODIES = ("body", "reference")
# The exceptions of each form. onnx's reference evaluator passes NumPy's errors on, or raises TypeError.
RAISED = {
    "numpy": (IndexError, ValueError),
    "python": (IndexError, ValueError),
    "native": (state.InvalidArgument, state.RuntimeException, state.Fail),
    "body": (state.InvalidArgument, state.Fail, ValueError),
    "reference": (IndexError, ValueError, TypeError),
}


def strings(values: Any) -> np.ndarray:
    """Return a tensor of strings in ONNX Runtime's representation, an array of objects."""
    return np.array(values, dtype=object)


def one_node(
    op_type: str,
    inputs: Mapping[str, np.ndarray],
    attributes: Mapping[str, Any] | None = None,
    constants: Sequence[str] = (),
) -> onnx.ModelProto:
    """Return the model of one node; inputs named in ``constants`` are initializers, the others are graph inputs."""
    operator = find(op_type)
    types = {variable: _element_type(inputs[name]) for name, variable in operator.inputs.items() if name in inputs}
    outputs = []
    # Some operators have equal names for an input and an output.
    names = [f"{name}_out" if name in inputs else name for name in operator.outputs]
    for name, variable in zip(names, operator.outputs.values(), strict=True):
        element_type = types.get(variable)
        if element_type is None:
            element_type = getattr(TensorProto, operator.element_types(variable)[0].upper())
        outputs.append(onnx.ValueInfoProto(name=name))
        outputs[-1].type.tensor_type.elem_type = element_type
    graph = helper.make_graph(
        [
            helper.make_node(
                op_type,
                [name if name in inputs else "" for name in operator.inputs],
                names,
                domain=onnx_specops.DOMAIN,
                **(attributes or {}),
            )
        ],
        op_type,
        [
            helper.make_tensor_value_info(name, _element_type(array), [None] * array.ndim)
            for name, array in inputs.items()
            if name not in constants
        ],
        outputs,
        [_constant(name, inputs[name]) for name in constants],
    )
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid(onnx_specops.DOMAIN, onnx_specops.OPSET_VERSION)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def run(
    form: str,
    op_type: str,
    inputs: Mapping[str, np.ndarray],
    attributes: Mapping[str, Any] | None = None,
    constants: Sequence[str] = (),
) -> Any:
    """Return the node's output in ``form``, or the list of outputs if there are several."""
    if form == "numpy":
        operator = find(op_type)
        arrays = [inputs.get(name) for name in operator.inputs]
        return operator(*arrays, **operator.node_attributes(dict(attributes or {})))
    model = one_node(op_type, inputs, attributes, constants)
    feeds = {name: array for name, array in inputs.items() if name not in constants}
    if form == "reference":
        outputs = ReferenceEvaluator(add_bodies(model)).run(None, feeds)
    elif form == "body":
        outputs = ort.InferenceSession(add_bodies(model).SerializeToString()).run(None, feeds)
    else:
        outputs = onnx_specops.InferenceSession(model.SerializeToString(), kernels=form).run(None, feeds)
    return outputs[0] if len(outputs) == 1 else outputs


def _element_type(array: np.ndarray) -> int:
    return TensorProto.STRING if array.dtype.kind == "O" else helper.np_dtype_to_tensor_dtype(array.dtype)


def _constant(name: str, array: np.ndarray) -> TensorProto:
    if array.dtype.kind != "O":
        return numpy_helper.from_array(array, name)
    tensor = TensorProto(name=name, data_type=TensorProto.STRING, dims=array.shape)
    tensor.string_data.extend([s if isinstance(s, bytes) else s.encode() for s in array.reshape(-1)])
    return tensor
