"""Small graphs for passes, with their results.

Each condition of a matcher has one line for the match and one for the near miss::

    @pytest.mark.parametrize(
        ("emit", "found"),
        [
            (lambda op, x: op.Pad(x, [0, 0, 0, 0]), ["Identity"]),
            (lambda op, x: op.Pad(x, [0, 1, 0, 0]), ["Pad"]),
        ],
    )
    def test_pads(emit, found):
        assert rewritten(emit, floats("x", 2, 3), by=[DropCopies()]) == found

`rewritten` runs the graph before and after the passes; the results must agree.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime as ort
from onnx_ir.passes import InPlacePass
from onnx_ir.passes.common import RemoveUnusedNodesPass

import onnx_specops
from converters.passes.valid_nodes import CheckNodes
from onnx_specops.bodies import attach_bodies
from onnx_specops.building import IR_VERSION, OPSET_IMPORTS, Builder, Value, new_value

Emit = Callable[..., Value | Sequence[Value]]


def graph(emit: Emit, *inputs: Value) -> ir.Model:
    """Return a model whose outputs are the results of ``emit(op, *inputs)``; inputs are vectors of floats by default."""
    op = Builder(ir.Graph(list(inputs), [], nodes=[], name="graph", opset_imports=dict(OPSET_IMPORTS)))
    emitted = emit(op, *inputs)
    op.graph.outputs.extend([emitted] if isinstance(emitted, ir.Value) else emitted)
    return ir.Model(op.graph, ir_version=IR_VERSION)


def floats(name: str, *dims: int | None) -> Value:
    return new_value(ir.DataType.FLOAT, dims or (None,), name)


def operators(model: ir.Model) -> list[str]:
    """Return the operators of all nodes, including those of nested graphs."""
    return sorted(node.op_type for node in ir.traversal.RecursiveGraphIterator(model.graph))


def run(model: ir.Model, *arrays: np.ndarray) -> list[np.ndarray]:
    """Run the model, which must be valid and declare its outputs."""
    proto = ir.to_proto(model)
    onnx.checker.check_model(proto, full_check=True)
    outputs = _outputs(proto, arrays, optimized=False)
    for output, value in zip(outputs, model.graph.outputs, strict=True):
        assert value.dtype is not None and value.dtype.numpy() == output.dtype
        assert value.shape is None or len(value.shape) == output.ndim
    return outputs


def rewritten(
    emit: Emit,
    *inputs: Value,
    by: Sequence[InPlacePass],
    numbers: Sequence[np.ndarray] | None = None,
    atol: float = 1e-5,
    share: float = 0.0,
    optimized: bool = False,
) -> list[str]:
    """Return the sorted operators of a graph after some passes.

    The results in ONNX Runtime on the CPU must be unchanged.

    Args:
        emit, inputs: the graph, see `graph`.
        by: the passes.
        numbers: the fed arrays; by default random, with 5 for unknown dimensions.
        atol: the allowed absolute difference.
        share: the fraction of numbers that may differ by more, because they are halfway between two levels.
        optimized: whether ONNX Runtime optimizes the resulting graph.
    """
    model = graph(emit, *inputs)
    if numbers is None:
        rng = np.random.default_rng(0)
        shapes = [[size if isinstance(size, int) else 5 for size in value.shape or ()] for value in inputs]
        numbers = [
            rng.standard_normal(shape).astype(value.dtype.numpy())
            for value, shape in zip(inputs, shapes, strict=True)
            if value.dtype
        ]
    before = _proto(model)
    for step in (*by, RemoveUnusedNodesPass(), CheckNodes()):
        step(model)
    expected = _outputs(before, numbers, optimized=False)
    got = _outputs(_proto(model), numbers, optimized=optimized)
    for one, other in zip(expected, got, strict=True):
        assert one.shape == other.shape and one.dtype == other.dtype
        differing = ~np.isclose(other.astype(np.float64), one.astype(np.float64), rtol=1e-4, atol=atol, equal_nan=True)
        assert differing.mean() <= share if differing.size else True, (one[differing][:5], other[differing][:5])
    return operators(model)


def _proto(model: ir.Model) -> onnx.ModelProto:
    """Return a copy of the model with bodies."""
    copy = ir.from_proto(ir.to_proto(model))
    attach_bodies(copy)
    return ir.to_proto(copy)


def _outputs(proto: onnx.ModelProto, arrays: Sequence[np.ndarray], *, optimized: bool) -> list[np.ndarray]:
    options = ort.SessionOptions()
    options.log_severity_level = 3
    if not optimized:
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    # a session of the package, whose sums of 8-bit integers do not saturate
    session = onnx_specops.InferenceSession(proto, options, ["CPUExecutionProvider"], kernels="none")
    return session.run(None, {i.name: a for i, a in zip(session.get_inputs(), arrays, strict=True)})
