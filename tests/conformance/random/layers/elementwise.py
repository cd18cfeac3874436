"""Elementwise layers and conversions."""

from __future__ import annotations

from tests.conformance.random.graph import ANY, FLOATS, INTEGERS, NUMBERS, SIGNED, Graph, Unfit, maker

# fmt: off
_FLOAT_UNARY = (
    "Acos", "Asin", "Atan", "Cos", "Cosh", "Erf", "Exp", "Log", "Sin", "Sinh", "Sqrt", "Tan", "Tanh", "Sigmoid", "Acosh-4",
    "Asinh-4", "Atanh-4", "SoftPlus-4", "Mish-4", "HSwish-4", "HSigmoid-5", "SoftSign-9", "Gelu-2", "Gelu-7", "ErfInv-17",
    "Round-5", "Ceiling", "Floor",
)
_UNARY = ("Abs", "Negative", "Relu", "Sign", "Identity-16")
_BINARY = (
    "Add", "Subtract", "Multiply", "Divide", "Maximum", "Minimum", "SquaredDifference", "Mod", "FloorMod", "Power", "PRelu",
)
_COMPARISONS = ("Equal", "NotEqual", "Less", "LessEqual", "Greater", "GreaterEqual")
# fmt: on
_LOGICAL = ["LogicalAnd", "LogicalOr", "LogicalXor", "Xor"]


def _named(name: str) -> tuple[str, str]:
    """Return the operation and opset of ``Gelu-7``; opset 1 without a number."""
    operation, _, number = name.partition("-")
    return operation, f"opset{number or 1}"


@maker(4)
def unary(g: Graph) -> None:
    known = g.chance(0.9)
    if g.chance(0.7):
        g.layer(*_named(g.pick(*_FLOAT_UNARY)), g.value(FLOATS, known=known))
    else:
        g.layer(*_named(g.pick(*_UNARY)), g.value((*FLOATS, *SIGNED), known=known))


@maker()
def integer_unary(g: Graph) -> None:
    operation = g.pick(
        "Abs", "Negative", "Relu", "Sign", "Floor", "Ceiling", "Sqrt", "Exp", "Erf", "Cos", "Tan", "BitwiseNot-13"
    )
    g.layer(*_named(operation), g.value(("boolean", *INTEGERS) if "Not" in operation else INTEGERS))


@maker()
def tested(g: Graph) -> None:
    g.layer(*_named(g.pick("IsNaN-10", "IsInf-10", "IsFinite-10")), g.value(FLOATS))


@maker(2)
def parametrised(g: Graph) -> None:
    x = g.value(FLOATS, known=g.chance(0.9))
    match g.pick("Elu", "Clamp", "Swish", "HardSigmoid", "Selu", "PRelu"):
        case "Elu":
            g.layer("Elu", "opset1", x, alpha=g.float(-1, 3))
        case "Clamp":
            low = g.float(-3, 2)
            g.layer("Clamp", "opset1", x if g.chance(0.7) else g.value(INTEGERS), min=low, max=low + g.float(0, 3))
        case "Swish":
            beta = [g.leaf(g.array(x.type, ()), 0.5)] if g.chance(0.6) else []
            g.layer("Swish", "opset4", x, *beta)
        case "PRelu":
            slope = (x.dims[1],) if x.rank > 1 and g.chance(0.5) else (1,)
            g.layer("PRelu", "opset1", x, g.leaf(g.array(x.type, slope), 0.6))
        case operation:
            g.layer(operation, "opset1", x, *(g.leaf(g.array(x.type, (), 0, 2), 0.98) for _ in range(2)))


@maker(6)
def binary(g: Graph) -> None:
    operation = g.pick(*_BINARY)
    a = g.value(FLOATS if operation in ("Power", "PRelu") and g.chance(0.9) else NUMBERS)
    if operation == "SquaredDifference" and a.type in ("i8", "u8"):
        raise Unfit("the CPU plugin does not give squares, and there is no reference kernel")
    low = 1 if operation in ("Divide", "Mod", "FloorMod") and g.chance(0.8) else -4
    b = g.broadcasting(a, low=0 if operation == "Power" else low)
    if operation == "PRelu" and (
        b.rank > a.rank or any(d not in (1, e) for d, e in zip(b.dims[::-1], a.dims[::-1], strict=False))
    ):
        raise Unfit("slopes that do not fit the data: the CPU plugin accepts some of them")
    swapped = operation not in ("PRelu", "Divide", "Mod", "FloorMod", "Power") and g.chance(0.4)
    broadcast = (
        {} if operation == "PRelu" else {"auto_broadcast": "none" if a.shape == b.shape and g.chance(0.1) else "numpy"}
    )
    g.layer(operation, "opset1", *((b, a) if swapped else (a, b)), **broadcast)


@maker()
def paddle(g: Graph) -> None:
    """Operands that are broadcast from an axis on."""
    a = g.value(NUMBERS, (1, 4))
    axis = g.int(0, a.rank - 1)
    end = g.int(axis + 1, a.rank)
    b = g.fresh((a.type,), a.dims[axis:end], 0.5, 1)
    operation = g.pick("Add", "Multiply", "Maximum", "FloorMod", "Power", "Greater", "GreaterEqual", "Minimum")
    if operation.startswith("Greater"):
        raise Unfit("neither the CPU plugin nor the reference kernel broadcasts operands here")
    laid = {
        "auto_broadcast": "pdpd",
        "auto_broadcast.auto_broadcast_axis": axis if end < a.rank or g.chance(0.5) else -1,
    }
    g.layer(operation, "opset1", a, b, **laid)


@maker(2)
def comparison(g: Graph) -> None:
    a = g.value(ANY)
    g.layer(g.pick(*_COMPARISONS), "opset1", a, g.broadcasting(a), auto_broadcast="numpy")


@maker()
def logical(g: Graph) -> None:
    a = g.value(("boolean",))
    if g.chance(0.3):
        g.layer("LogicalNot", "opset1", a)
    else:
        g.layer(g.pick(*_LOGICAL), "opset1", a, g.broadcasting(a), auto_broadcast="numpy")


@maker()
def bitwise(g: Graph) -> None:
    shift = g.chance(0.4)
    a = g.value(INTEGERS if shift else (*INTEGERS, "boolean"))
    if shift:
        b = g.fresh((a.type,), [1 if g.chance(0.3) else d for d in a.dims], 0.5, 0, 6)
        g.layer(g.pick("BitwiseLeftShift", "BitwiseRightShift"), "opset15", a, b, auto_broadcast="numpy")
    else:
        g.layer(g.pick("BitwiseAnd", "BitwiseOr", "BitwiseXor"), "opset13", a, g.broadcasting(a), auto_broadcast="numpy")


@maker(2)
def select(g: Graph) -> None:
    a = g.value(ANY)
    b = g.broadcasting(a)
    condition = g.value(("boolean",), where=lambda v: v.shape == a.shape, fresh=0.0) if g.chance(0.4) else None
    if condition is None:
        condition = g.fresh(("boolean",), [1 if g.chance(0.2) else d for d in a.dims])
    g.layer("Select", "opset1", condition, a, b, auto_broadcast="numpy")


@maker(2)
def convert(g: Graph) -> None:
    x = g.value(ANY, known=g.chance(0.8))
    if g.chance(0.2):
        g.layer("ConvertLike", "opset1", x, g.value(ANY))
    elif g.chance(0.2):
        target = g.pick("f32", "f16", "i32")
        g.layer("ConvertPromoteTypes", "opset14", x, g.value(ANY), u64_integer_promotion_target=target)
    else:
        g.layer("Convert", "opset1", x, destination_type=g.type(ANY))


@maker()
def quantize(g: Graph) -> None:
    x = g.value(FLOATS, (0, 5))
    shape = [1] * x.rank
    if x.rank > 1 and g.chance(0.4):
        shape[1] = x.dims[1]
    low, out = g.array(x.type, shape, -4, -1), g.array(x.type, shape, -4, 0)
    ends = [g.leaf(a, 0.9) for a in (low, low + g.array(x.type, shape, 1, 5), out, out + g.array(x.type, shape, 1, 4))]
    g.layer("FakeQuantize", "opset1", x, *ends, levels=g.pick(2, 5, 16, 255, 256), auto_broadcast="numpy")


@maker()
def fake_convert(g: Graph) -> None:
    x = g.value(("f32", "f16", "bf16"))
    scale = g.leaf(g.array(x.type, (), 1, 4), 0.8)
    shift = [g.leaf(g.array(x.type, ()), 0.8)] if g.chance(0.5) else []
    g.layer("FakeConvert", "opset13", x, scale, *shift, destination_type=g.pick("f8e4m3", "f8e5m2"))
