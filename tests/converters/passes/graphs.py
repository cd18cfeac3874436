"""Small graphs for passes, and what they compute."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime as ort

from onnx_specops.building import IR_VERSION, OPSET_IMPORTS, Builder, Value, new_value


def graph(emit: Callable[..., Value | Sequence[Value]], *inputs: Value) -> ir.Model:
    """A model whose outputs are what ``emit(op, *inputs)`` gives, as they are; inputs are vectors of floats by default."""
    op = Builder(ir.Graph(list(inputs), [], nodes=[], name="graph", opset_imports=dict(OPSET_IMPORTS)))
    emitted = emit(op, *inputs)
    op.graph.outputs.extend([emitted] if isinstance(emitted, ir.Value) else emitted)
    return ir.Model(op.graph, ir_version=IR_VERSION)


def floats(name: str, *dims: int | None) -> Value:
    return new_value(ir.DataType.FLOAT, dims or (None,), name)


def operators(model: ir.Model) -> list[str]:
    """The operators of every node, those of nested graphs included."""
    return sorted(node.op_type for node in ir.traversal.RecursiveGraphIterator(model.graph))


def run(model: ir.Model, *arrays: np.ndarray) -> list[np.ndarray]:
    """The outputs; the model must be valid, and say of its outputs what they are."""
    proto = ir.to_proto(model)
    onnx.checker.check_model(proto, full_check=True)
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = ort.InferenceSession(proto.SerializeToString(), options)
    outputs = session.run(None, {i.name: a for i, a in zip(session.get_inputs(), arrays, strict=True)})
    for output, value in zip(outputs, model.graph.outputs, strict=True):
        assert value.dtype is not None and value.dtype.numpy() == output.dtype
        assert value.shape is None or len(value.shape) == output.ndim
    return outputs
