"""One node of the domain in a plain ONNX Runtime session with the native kernels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper

import onnx_specops
from converters.validation.ort_values import run_session

Node = tuple[str, list[Any], list[int], dict[str, Any]]
"""An operator's name, its inputs, the element types of its outputs, and its attributes."""


def element_type(array: np.ndarray) -> int:
    """Return the ``TensorProto.DataType`` of an array (strings are arrays of objects)."""
    return TensorProto.STRING if array.dtype.kind == "O" else helper.np_dtype_to_tensor_dtype(array.dtype)


def model(
    op_type: str,
    inputs: Sequence[np.ndarray | None],
    outputs: Sequence[int],
    attributes: Mapping[str, Any] | None = None,
    *,
    dimensions: Sequence[Sequence[Any]] | None = None,
    followed: bool = False,
) -> bytes:
    """Return a model of one node.

    Args:
        op_type: the operator.
        inputs: arrays of the inputs' types and ranks; ``None`` for an omitted input.
        outputs: the outputs' element types.
        attributes: the node's attributes.
        dimensions: the inputs' dimensions, unknown by default.
        followed: add an Identity after each output, so that the graph does not declare the node's output types.
    """
    graph = onnx.GraphProto(name=op_type)
    _add(graph, "", (op_type, list(inputs), list(outputs), dict(attributes or {})), dimensions, followed)
    return _model(graph)


def model_of_all(nodes: Sequence[Node]) -> bytes:
    """Return a model of independent nodes. The inputs of the first one are ``0.i0``, ``0.i1``, ...; see `feeds_of_all`."""
    graph = onnx.GraphProto(name="nodes")
    for number, node in enumerate(nodes):
        _add(graph, f"{number}.", node)
    return _model(graph)


def feeds_of_all(nodes: Sequence[Node]) -> dict[str, np.ndarray]:
    """Return the inputs of `model_of_all`."""
    return {
        f"{number}.i{k}": array
        for number, (_, inputs, _, _) in enumerate(nodes)
        for k, array in enumerate(inputs)
        if array is not None
    }


def _add(
    graph: onnx.GraphProto,
    prefix: str,
    node: Node,
    dimensions: Sequence[Sequence[Any]] | None = None,
    followed: bool = False,
) -> None:
    """Add a node, and its inputs and outputs to those of the graph."""
    op_type, inputs, outputs, attributes = node
    names = ["" if array is None else f"{prefix}i{k}" for k, array in enumerate(inputs)]
    while names and not names[-1]:
        names.pop()
    results = [f"{prefix}o{k}" for k in range(len(outputs))]
    made = [f"{prefix}n{k}" for k in range(len(outputs))] if followed else results
    graph.node.append(helper.make_node(op_type, names, made, domain=onnx_specops.DOMAIN, **attributes))
    if followed:
        graph.node.extend(helper.make_node("Identity", [a], [b]) for a, b in zip(made, results, strict=True))
    graph.input.extend(
        helper.make_tensor_value_info(
            f"{prefix}i{k}", element_type(array), [None] * array.ndim if dimensions is None else dimensions[k]
        )
        for k, array in enumerate(inputs)
        if array is not None
    )
    graph.output.extend(
        helper.make_tensor_value_info(name, type_, None) for name, type_ in zip(results, outputs, strict=True)
    )


def _model(graph: onnx.GraphProto) -> bytes:
    opsets = [
        helper.make_opsetid("", 21),
        helper.make_opsetid(onnx_specops.DOMAIN, onnx_specops.OPSET_VERSION),
    ]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString()


def session(model_bytes: bytes, threads: int = 2) -> ort.InferenceSession:
    """Return a session with the native kernels and without logs."""
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")  # also in processes without tests/conftest.py
    options.log_severity_level = 4
    options.register_custom_ops_library(onnx_specops.library_path())
    return ort.InferenceSession(model_bytes, options, providers=["CPUExecutionProvider"])


def run(
    op_type: str,
    inputs: Sequence[np.ndarray | None],
    outputs: Sequence[int],
    attributes: Mapping[str, Any] | None = None,
    *,
    threads: int = 2,
    followed: bool = False,
) -> list[np.ndarray]:
    """Return the outputs of the node."""
    made = session(model(op_type, inputs, outputs, attributes, followed=followed), threads)
    return run_session(made, {f"i{k}": array for k, array in enumerate(inputs) if array is not None})


def run_body(
    op_type: str, inputs: Sequence[np.ndarray | None], outputs: Sequence[int], attributes: Mapping[str, Any]
) -> list[np.ndarray]:
    """Return the outputs of the node's body, without our kernels."""
    proto = onnx_specops.add_bodies(onnx.load_from_string(model(op_type, inputs, outputs, attributes)))
    options = ort.SessionOptions()
    options.log_severity_level = 4
    made = ort.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return run_session(made, {f"i{k}": array for k, array in enumerate(inputs) if array is not None})
