"""Small models that use the domain in all possible places."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

import onnx_specops

OPSETS = [helper.make_opsetid("", 21), helper.make_opsetid("onnx_specops", 1), helper.make_opsetid("local", 1)]
TABLE = np.arange(12, dtype=np.float32).reshape(4, 3)


def model(
    nodes: Sequence[onnx.NodeProto],
    inputs: Sequence[onnx.ValueInfoProto],
    outputs: Sequence[onnx.ValueInfoProto],
    initializers: Sequence[onnx.TensorProto] = (),
    functions: Sequence[onnx.FunctionProto] = (),
) -> onnx.ModelProto:
    graph = helper.make_graph(list(nodes), "graph", list(inputs), list(outputs), list(initializers))
    return helper.make_model(graph, opset_imports=OPSETS, functions=list(functions), ir_version=10)


def value(name: str, type_: int, shape: Sequence[Any] | None) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, type_, shape)


def bag(table: str, indices: str, offsets: str, output: str) -> onnx.NodeProto:
    """Return a node with two omitted inputs, which Python kernels require."""
    return helper.make_node("EmbeddingBagOffsetsSum", [table, indices, offsets], [output], domain=onnx_specops.DOMAIN)


def constants(table: np.ndarray = TABLE) -> list[onnx.TensorProto]:
    return [numpy_helper.from_array(table, "table"), numpy_helper.from_array(np.array([0]), "offsets")]


def sum_of_rows(table: np.ndarray = TABLE) -> onnx.ModelProto:
    """Return a model that sums the rows at ``indices`` of a constant table."""
    type_ = helper.np_dtype_to_tensor_dtype(table.dtype)
    return model(
        [bag("table", "indices", "offsets", "sum")],
        [value("indices", TensorProto.INT64, ["n"])],
        [value("sum", type_, [1, table.shape[1]])],
        constants(table),
    )


def in_if(table: np.ndarray = TABLE) -> onnx.ModelProto:
    """Return the same in a branch of an If that is always taken."""
    type_ = helper.np_dtype_to_tensor_dtype(table.dtype)
    taken = helper.make_graph(
        [bag("table", "indices", "offsets", "taken")], "then", [], [value("taken", type_, [1, table.shape[1]])]
    )
    other = helper.make_graph(
        [helper.make_node("Gather", ["table", "offsets"], ["other"])], "else", [], [value("other", type_, None)]
    )
    return model(
        [
            helper.make_node("Size", ["indices"], ["size"]),
            helper.make_node("Cast", ["size"], ["any"], to=TensorProto.BOOL),
            helper.make_node("If", ["any"], ["sum"], then_branch=taken, else_branch=other),
        ],
        [value("indices", TensorProto.INT64, ["n"])],
        [value("sum", type_, [1, table.shape[1]])],
        constants(table),
    )


def in_loop(table: np.ndarray = TABLE) -> onnx.ModelProto:
    """Return the same as the last of three iterations of a Loop."""
    type_ = helper.np_dtype_to_tensor_dtype(table.dtype)
    row = [1, table.shape[1]]
    body = helper.make_graph(
        [helper.make_node("Identity", ["condition"], ["again"]), bag("table", "indices", "offsets", "next")],
        "body",
        [value("i", TensorProto.INT64, []), value("condition", TensorProto.BOOL, []), value("before", type_, row)],
        [value("again", TensorProto.BOOL, []), value("next", type_, row)],
    )
    zeros = numpy_helper.from_array(np.zeros(row, table.dtype), "zeros")
    trips = numpy_helper.from_array(np.array(3), "trips")
    return model(
        [helper.make_node("Loop", ["trips", "", "zeros"], ["sum"], body=body)],
        [value("indices", TensorProto.INT64, ["n"])],
        [value("sum", type_, row)],
        [*constants(table), zeros, trips],
    )


def in_function(table: np.ndarray = TABLE) -> onnx.ModelProto:
    """Return the same in a model-local function that another one calls."""
    inner = helper.make_function(
        "local", "Inner", ["t", "i", "o"], ["s"], [bag("t", "i", "o", "s")], OPSETS[:2], [], [], overload=""
    )
    call = helper.make_node("Inner", ["t", "i", "o"], ["s"], domain="local")
    outer = helper.make_function("local", "Outer", ["t", "i", "o"], ["s"], [call], OPSETS, [])
    type_ = helper.np_dtype_to_tensor_dtype(table.dtype)
    return model(
        [helper.make_node("Outer", ["table", "indices", "offsets"], ["sum"], domain="local")],
        [value("indices", TensorProto.INT64, ["n"])],
        [value("sum", type_, [1, table.shape[1]])],
        constants(table),
        [inner, outer],
    )


PLACES = [sum_of_rows, in_if, in_loop, in_function]
