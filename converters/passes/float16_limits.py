"""Numbers that float16 cannot represent: positions, numbers close to zero, and large intermediate results.

float16 represents integers up to 2048. Below 2**-14 it has fewer than 11 significant bits, and above 65504 only infinity.
`positions`, `near_zero` and `overflowing` find the nodes that compute such numbers from the origin of their inputs.
`InFloat16` keeps these nodes in float32.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

import numpy as np
import onnx_ir as ir

from onnx_specops.graphs import producer_of

D = ir.DataType

LARGEST = 65504.0
"""The largest number of float16."""

LEAST_NORMAL = 2.0**-14
"""The smallest number that float16 represents with all its bits."""

_FEW = 4096
"""A larger constant in a MatMul is a matrix of weights."""

_TABLE = 1 << 16
"""Larger constants that are combined with each other are weights, which stay small in the file."""

_PRODUCTS = frozenset(("Conv", "ConvTranspose", "Einsum", "Gemm", "MatMul"))
_CONTROL = frozenset(("If", "Loop", "Scan"))
_BOUNDED = frozenset(("Cos", "Erf", "HardSigmoid", "Sigmoid", "Sign", "Sin", "Softmax", "Softsign", "Tanh"))
"""Operators with results between -1 and 1 for any inputs."""

_LAID_OUT = frozenset((
    "Cast", "Concat", "Expand", "Flatten", "Identity", "Reshape", "Slice", "Split", "Squeeze", "Tile", "Transpose",
    "Unsqueeze",
))  # fmt: skip

_ARITHMETIC = _LAID_OUT | {"Abs", "Add", "Clip", "Div", "Floor", "Max", "Min", "Mul", "Neg", "Round", "Sub"}
_EXACT = frozenset(("Cos", "Equal", "Sin"))
_SMALL_INTEGERS = frozenset((D.BOOL, D.INT8, D.UINT8))

_STAYS_NEAR_ZERO = _LAID_OUT | {
    "Abs", "Clip", "Gather", "Max", "Min", "Mul", "Neg", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceSum", "Relu", "Sqrt",
    "Where",
}  # fmt: skip
_LEAVES_ZERO = frozenset(("Div", "Log", "Pow", "Reciprocal"))
_TAKES_CONSTANT = frozenset(("Add", "Clip", "Div", "Max", "Min", "Mul", "Pow", "Sub"))

_SUMS = frozenset(("CumSum", "ReduceL1", "ReduceL2", "ReduceSum", "ReduceSumSquare"))
_GROWS = _SUMS | {"Exp", "ReduceProd"}
"""Operators whose results may be far larger than their inputs."""

_STAYS_LARGE = _LAID_OUT | {
    "Abs", "Add", "Clip", "Gather", "Max", "Mean", "Min", "Neg", "ReduceMax", "ReduceMin", "Relu", "Sub", "Sum", "Where",
}  # fmt: skip
_RETURNS = frozenset(("Div", "Log", "Pow", "Reciprocal", "Sqrt"))
"""Operators whose results may be in float16's range for inputs beyond it."""


def is_constant(value: ir.Value) -> bool:
    """Return whether a value is an initializer that no caller can replace."""
    return value.const_value is not None and value.producer() is None and not value.is_graph_input()


def positions(nodes: Iterable[ir.Node], floats: Collection[ir.Value], given: Collection[ir.Value] = ()) -> set[ir.Node]:
    """Return the nodes that compute with integers and constants only, or compute angles of inputs.

    They begin at a Cast of integers of 16 bits or more, at a sum of smaller integers, and at constants. They end where other
    numbers are combined, at a matrix of weights, or after a function with results between -1 and 1, such as Cos. The inputs
    of a model may be positions, too, if a Cos, Equal or Sin follows, with only arithmetic and data movement between.

    Args:
        nodes: the nodes of a graph and its nested graphs, in topological order.
        floats: the values that would become float16.
        given: the inputs of the model.
    """
    found: set[ir.Node] = set()
    derived: set[ir.Value] = set()
    counted: set[ir.Value] = set()  # small integers
    from_inputs = {value for value in given if value in floats}
    laid_out: dict[ir.Value, ir.Node] = {}  # reshaped constants
    for node in nodes:
        if node.domain or node.op_type in _CONTROL:
            continue
        inputs = [value for value in node.inputs if value is not None and value in floats]
        fixed = [value for value in inputs if is_constant(value) or value in laid_out]
        if node.op_type in _LAID_OUT and inputs and len(fixed) == len(inputs):
            laid_out.update((output, node) for output in node.outputs)
            continue
        if _is_position(node, inputs, fixed, derived, counted):
            found.add(node)
            if node.op_type not in _BOUNDED:
                derived.update(node.outputs)
        elif _casts_integers(node) or (
            node.op_type in _ARITHMETIC and inputs and all(v in counted or v in fixed for v in inputs)
        ):
            counted.update(node.outputs)
        elif any(v in from_inputs for v in inputs) and all(v in from_inputs or v in derived or v in fixed for v in inputs):
            if node.op_type in _EXACT:
                found |= {node, *_sources(inputs, from_inputs)}
            elif node.op_type in _ARITHMETIC:
                from_inputs.update(node.outputs)
        if node in found:
            found |= _sources(fixed, laid_out)
    return found


def _is_position(
    node: ir.Node,
    inputs: Collection[ir.Value],
    fixed: Collection[ir.Value],
    derived: Collection[ir.Value],
    counted: Collection[ir.Value],
) -> bool:
    if _casts_integers(node, wide=True):
        return True
    if not inputs or (node.op_type in _PRODUCTS and any(_elements(value) > _FEW for value in fixed)):
        return False
    if node.op_type in ("CumSum", "ReduceSum") and all(value in counted for value in inputs):
        return True
    if not any(value in derived for value in inputs):  # of constants only, except weights
        constant = all(value is None or is_constant(value) or value in fixed for value in node.inputs)
        return constant and node.op_type != "DequantizeLinear" and sum(map(_elements, fixed)) <= _TABLE
    return all(value in derived or value in fixed for value in inputs)


def _sources(values: Iterable[ir.Value], among: Collection[ir.Value]) -> set[ir.Node]:
    """Return the nodes that compute values, following only the values of a collection."""
    found: set[ir.Node] = set()
    pending = [value for value in values if value in among]
    while pending:
        node = pending.pop().producer()
        if node is not None and node not in found:
            found.add(node)
            pending += [value for value in node.inputs if value is not None and value in among]
    return found


def near_zero(nodes: Iterable[ir.Node], floats: Collection[ir.Value]) -> tuple[set[ir.Node], set[ir.Value]]:
    """Return the nodes whose numbers may be below float16's normal ones, and their results that may be large.

    They begin where a constant of such numbers is added or multiplied, as weights are, or limits others. They end at the
    Div, Log, Pow or Reciprocal that takes them, or where other numbers are added.

    Args:
        nodes, floats: see `positions`.
    """
    found: set[ir.Node] = set()
    small: set[ir.Value] = set()
    large: set[ir.Value] = set()
    for node in nodes:
        if node.domain or node.op_type in _CONTROL or node.outputs[0] not in floats:
            continue
        begins = node.op_type in _TAKES_CONSTANT and any(
            value is not None and value in floats and is_near_zero(value, some=node.op_type == "Div" and index == 1)
            for index, value in enumerate(node.inputs)
        )
        begins = begins or (node.op_type in _PRODUCTS and any(is_near_zero(value, some=False) for value in node.inputs[:2]))
        takes = [index for index, value in enumerate(node.inputs) if value in small]
        if not begins and not (takes and node.op_type in _STAYS_NEAR_ZERO | _LEAVES_ZERO):
            continue
        found.add(node)
        divides = node.op_type in ("Log", "Pow", "Reciprocal") or (node.op_type == "Div" and takes != [0])
        if not divides:
            small.update(node.outputs)
        elif node.op_type != "Log" and not _normalizes(node):
            large.update(node.outputs)
    return found, large


def _normalizes(node: ir.Node) -> bool:
    """Return whether the root of a mean square plus a constant divides numbers so that they stay in float16's range.

    The quotient of the numbers of the mean is at most the root of their number. That of a constant is at most itself divided
    by the root of the added constant.
    """
    numbers, root = node.inputs[:2] if node.op_type == "Div" else (None, None)
    total = producer_of(producer.inputs[0], "Add") if (producer := producer_of(root, "Sqrt")) is not None else None
    if total is None or numbers is None:
        return False
    for mean, added in (total.inputs, reversed(total.inputs)):
        average = producer_of(mean, "ReduceMean")
        square = None if average is None else _squared(average.inputs[0])
        if average is None or square is None or added is None or not is_constant(added) or added.const_value is None:
            continue
        least = float(added.const_value.numpy().min(initial=np.inf))
        if square is numbers and average.attributes.get_int("keepdims", 1) != 0:
            return least >= 0
        if is_constant(numbers) and numbers.const_value is not None:
            largest = float(np.abs(numbers.const_value.numpy()).max(initial=0))
            return least > 0 and largest / least**0.5 <= LARGEST
    return False


def _squared(value: ir.Value | None) -> ir.Value | None:
    """Return ``x`` if a value is the square of ``x``."""
    if (power := producer_of(value, "Pow")) is not None and _is_two(power.inputs[1]):
        return power.inputs[0]
    if (product := producer_of(value, "Mul")) is not None and product.inputs[0] is product.inputs[1]:
        return product.inputs[0]
    return None


def _is_two(value: ir.Value | None) -> bool:
    if value is None or not is_constant(value) or value.const_value is None:
        return False
    return bool((value.const_value.numpy() == 2).all())


def overflowing(nodes: Iterable[ir.Node], floats: Collection[ir.Value]) -> set[ir.Node]:
    """Return the nodes between squares, exponentials and sums and the operator that returns to ordinary numbers.

    Examples are the mean square and its root in a normalization, and the exponentials and their sum in a softmax. They begin
    at a square, a power, an Exp or a sum, and end at a Div, Log, Pow, Reciprocal or Sqrt, or at a sum that is multiplied by
    small constants. Between them, constants and other such numbers are combined. The products in a sum and in a divisor
    belong to them. A square that is only combined with other numbers does not belong to them, and neither does a sum that is
    added to other numbers.

    Args:
        nodes, floats: see `positions`.
    """
    large: dict[ir.Value, bool] = {}  # whether the numbers are larger than products
    taken: dict[ir.Node, list[ir.Value]] = {}  # the large inputs of nodes with large outputs
    ends: list[tuple[ir.Node, list[ir.Value]]] = []
    for node in nodes:
        if node.domain or node.op_type in _CONTROL or node.outputs[0] not in floats:
            continue
        inputs = [value for value in node.inputs if value is not None and value in floats]
        given = [value for value in inputs if value in large]
        combined = all(value in large or is_constant(value) for value in inputs)
        if (back := _returning(node, given, large)) and combined | (node.op_type == "Div"):
            ends.append((node, back))
        if _grows(node):
            large[node.outputs[0]] = True
            taken[node] = given
        elif given and combined and (node.op_type in _STAYS_LARGE or _keeps_large(node, given, large)):
            large.update(dict.fromkeys(node.outputs, any(large[value] for value in given)))
            taken[node] = given
        elif node.op_type == "Mul" and not any(is_constant(value) for value in inputs):
            large[node.outputs[0]] = False
            taken[node] = []
    found: set[ir.Node] = set()
    pending = [(node, value) for node, values in ends for value in values]
    while pending:
        node, value = pending.pop()
        found.add(node)
        source = value.producer()
        if source is not None and source in taken and source not in found:
            found.add(source)
            pending += [(source, inner) for inner in taken[source]]
    return found


def _grows(node: ir.Node) -> bool:
    """Return whether a node gives numbers far larger than its inputs: powers, exponentials and sums."""
    if node.op_type == "Mul":
        return node.inputs[0] is node.inputs[1]
    if node.op_type == "Pow":
        exponent = node.inputs[1]
        return exponent is not None and is_constant(exponent) and bool((_numbers(exponent) > 1).any())
    return node.op_type in _GROWS


def _keeps_large(node: ir.Node, given: Collection[ir.Value], large: Mapping[ir.Value, bool]) -> bool:
    """Return whether a product or a mean of large numbers is large, too. Means of products are ordinary."""
    if node.op_type == "Mul" and len(given) == 1:
        return True
    return node.op_type in _PRODUCTS | {"Mul", "ReduceMean"} and all(large[value] for value in given)


def _returning(node: ir.Node, given: Collection[ir.Value], large: Mapping[ir.Value, bool]) -> list[ir.Value]:
    """Return the large inputs that a node brings back to ordinary numbers."""
    if node.op_type == "Mul":
        factors = [value for value in node.inputs if value is not None and is_constant(value)]
        sums = [value for value in given if (source := value.producer()) is not None and source.op_type in _SUMS]
        return sums if factors and all((np.abs(_numbers(value)) < 1).all() for value in factors) else []
    if node.op_type == "Pow" and _grows(node):
        return []
    if node.op_type == "Div":
        divisor = node.inputs[1]
        return [value for value in given if large[value] or value is divisor or divisor in given]
    return list(given) if node.op_type in _RETURNS else []


def _numbers(value: ir.Value) -> np.ndarray:
    assert value.const_value is not None
    return value.const_value.numpy()


def _casts_integers(node: ir.Node, *, wide: bool = False) -> bool:
    """Return whether a node casts integers or booleans, or, if ``wide``, integers of 16 bits or more."""
    source = node.inputs[0] if node.op_type == "Cast" else None
    if source is None or source.dtype is None or is_constant(source):
        return False
    return source.dtype.is_integer() and source.dtype.bitwidth > 8 if wide else source.dtype in _SMALL_INTEGERS


def _elements(value: ir.Value) -> int:
    if value.const_value is not None:
        return value.const_value.size
    sizes = [] if value.shape is None else [size for size in value.shape if isinstance(size, int)]
    return int(np.prod(sizes)) if sizes else 0


def is_near_zero(value: ir.Value | None, *, some: bool) -> bool:
    """Return whether all numbers of a constant, or some of them, are nonzero and below float16's normal ones."""
    if value is None or not is_constant(value) or value.const_value is None or value.dtype != D.FLOAT:
        return False
    magnitudes = np.abs(value.const_value.numpy())
    magnitudes = magnitudes[(magnitudes > 0) & np.isfinite(magnitudes)]
    return bool(magnitudes.size and (magnitudes.min() if some else magnitudes.max()) < LEAST_NORMAL)
