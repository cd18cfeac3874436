"""Tensors of one element instead of scalar constants in arithmetic, and near misses."""

from __future__ import annotations

from tests.converters.passes.spellings.spelled import spelled


def test_scalars() -> None:
    def emit(op, x):
        return op.Mul(x, op.const(2.0)), op.Mul(op.ReduceSum(x, keepdims=0), op.const(2.0)), op.Gather(x, op.const(1))

    model = spelled("no scalar constants", emit)
    products = [node for node in model.graph if node.op_type == "Mul"]
    assert [len(node.inputs[1].shape or ()) for node in products if node.inputs[1] is not None] == [1, 0]
    gather = next(node for node in model.graph if node.op_type == "Gather")
    assert gather.inputs[1] is not None and not gather.inputs[1].shape
