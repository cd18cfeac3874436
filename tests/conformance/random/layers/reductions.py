"""Layers that reduce or normalize along axes."""

from __future__ import annotations

from tests.conformance.random.graph import FLOATS, NUMBERS, Graph, Unfit, maker

_REDUCTIONS = ["ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2"]


@maker(5)
def reduce(g: Graph) -> None:
    operation = g.pick(*_REDUCTIONS)
    x = g.value(NUMBERS if g.chance(0.4) else FLOATS, (1, 5))
    if 0 in x.dims and operation in ("ReduceMax", "ReduceMin", "ReduceMean"):
        raise Unfit("nothing to reduce")
    axes = g.signed(g.some(range(x.rank), 0 if g.chance(0.1) else 1), x.rank)
    numbers = g.index(axes[0] if len(axes) == 1 and g.chance(0.2) else axes, 0.97)
    g.layer(operation, "opset4" if "L" in operation else "opset1", x, numbers)


@maker()
def reduce_logical(g: Graph) -> None:
    x = g.value(("boolean",), (1, 4))
    axes = g.signed(g.some(range(x.rank), 1), x.rank)
    g.layer(g.pick("ReduceLogicalAnd", "ReduceLogicalOr"), "opset1", x, g.index(axes, 0.98))


@maker()
def cumulative(g: Graph) -> None:
    x = g.value(NUMBERS, (1, 4))
    g.layer("CumSum", "opset3", x, g.index(g.axis(x), 0.8))


@maker(2)
def softmax(g: Graph) -> None:
    x = g.value(FLOATS, (1, 5))
    axis = g.axis(x)
    match g.pick("Softmax-1", "Softmax-8", "LogSoftmax"):
        case "Softmax-1":
            g.layer("Softmax", "opset1", x, axis=axis % x.rank)
        case "Softmax-8":
            g.layer("Softmax", "opset8", x, axis=axis)
        case _:
            g.layer("LogSoftmax", "opset5", x, axis=axis)


@maker(2)
def normalised(g: Graph) -> None:
    x = g.value(FLOATS, (2, 5), where=lambda v: min(v.dims) > 0)
    axes = g.index(g.signed(g.some(range(x.rank), 1), x.rank), 0.9)
    eps = g.pick(1e-3, 1e-2, 0.1)
    match g.pick("MVN-1", "MVN-6", "NormalizeL2", "LRN", "GRN", "GroupNormalization", "BatchNormInference"):
        case "MVN-1":
            g.layer("MVN", "opset2", x, eps=eps)
        case "MVN-6":
            g.layer("MVN", "opset6", x, axes, eps=eps)
        case "NormalizeL2":
            g.layer("NormalizeL2", "opset1", x, g.index(sorted(g.some(range(x.rank), 1)), 1.0), eps=eps)
        case "LRN":
            where = g.index([1] if g.chance(0.6) else sorted(g.some(range(x.rank), 1)), 1.0)
            g.layer("LRN", "opset1", x, where, alpha=g.float(0, 2), beta=g.float(0, 1), bias=1.0, size=g.pick(1, 3, 5))
        case "GRN":
            g.layer("GRN", "opset1", x, bias=eps)
        case "GroupNormalization":
            channels = x.dims[1]
            groups = g.pick(*(d for d in range(1, channels + 1) if channels % d == 0))
            scale = [g.leaf(g.array(x.type, (channels,)), 0.8) for _ in range(2)]
            g.layer("GroupNormalization", "opset12", x, *scale, num_groups=groups, epsilon=eps)
        case _:
            four = [g.leaf(g.array(x.type, (x.dims[1],), low), 0.9) for low in (-4, -4, -4, 0.5)]
            if g.chance(0.5):
                g.layer("BatchNormInference", "opset5", x, *four, epsilon=eps)
            else:
                g.layer("BatchNormInference", "opset1", *four[:2], x, *four[2:], epsilon=eps)
