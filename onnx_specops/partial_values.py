"""Partial values: the known elements of small tensors while a graph is being built.

The shape of a tensor is rarely constant because the batch is unknown, but most of its dimensions are known. This module
tracks what rules and bodies compute from them (Gather, Slice, Mul, Concat). An element is a number or an `Expression` of
unknown dimensions. Equal expressions have the same value at run time.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from onnx_specops.folding import fold

MOST_ELEMENTS = 64
"""The maximum number of elements of a tracked tensor. Shapes, axes and their arithmetic have fewer."""

_MOST_TERMS = 8
_MOST_ATOMS = 64

Elements = np.ndarray
"""An array of objects, each a Python number or an `Expression`."""


class Expression:
    """An integer (or boolean) that is only known at run time, as a polynomial of atoms.

    Args:
        terms: the coefficient of each product of atoms; the empty product is the constant term.

    An atom is a tuple. ``("symbol", name)`` and ``("dim", value, axis)`` are dimensions. ``("element", value, index)`` is an
    element of a value about which nothing else is known. Other atoms are an operator and its operands. ``atoms`` is the
    number of atoms, including those of operands; it bounds the cost of comparing two expressions. ``least`` is a lower
    bound.
    """

    __slots__ = ("_hash", "atoms", "least", "terms")

    def __init__(self, terms: Mapping[tuple[Any, ...], int]) -> None:
        self.terms = {product: factor for product, factor in terms.items() if factor}
        self._hash = hash(frozenset(self.terms.items()))
        self.least = _least(self.terms)
        operands = [x for product in self.terms for atom in product for x in (atom, *atom)]
        self.atoms: int = sum(x.atoms if isinstance(x, Expression) else isinstance(x, tuple) for x in operands)

    @classmethod
    def atom(cls, *parts: Any) -> Expression:
        """Return the expression of one atom."""
        return cls({(parts,): 1})

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Expression) and self._hash == other._hash and self.terms == other.terms

    def __repr__(self) -> str:
        return f"Expression({self.terms})"

    @property
    def single(self) -> tuple[Any, ...] | None:
        """The atom, if the expression consists of a single atom; otherwise ``None``."""
        if len(self.terms) != 1:
            return None
        ((product, factor),) = self.terms.items()
        return product[0] if factor == 1 and len(product) == 1 else None

    @property
    def name(self) -> str | None:
        """The name of a dimension of this size, such as ``8*n`` or ``n+1``; ``None`` if an atom is not a named dimension."""
        if any(atom[0] != "symbol" for product in self.terms for atom in product):
            return None
        named = {tuple(sorted(atom[1] for atom in product)): factor for product, factor in self.terms.items()}
        return "+".join(_written(product, named[product]) for product in sorted(named, key=lambda names: (not names, names)))

    @classmethod
    def of_name(cls, name: str) -> Expression:
        """Return the expression of a dimension with a name."""
        terms = {}
        for written in name.split("+"):
            factors = written.split("*")
            number = 1 if _NUMBER.fullmatch(factors[0]) is None else int(factors.pop(0))
            terms[tuple(sorted((("symbol", factor) for factor in factors), key=_order))] = number
        return cls(terms)

    def evaluated(self, size_of: Callable[[str], int]) -> int:
        """Return the number that an expression of named dimensions has for their sizes."""
        return sum(factor * math.prod(size_of(name) for _, name in product) for product, factor in self.terms.items())


_NUMBER = re.compile("-?[0-9]+")


def _written(names: tuple[str, ...], factor: int) -> str:
    return "*".join([str(factor), *names] if factor != 1 or not names else names)


def symbol(text: str) -> str:
    """Return a name for a dimension about which nothing is known. It cannot be the name of an expression of others."""
    return text.replace("%", "%25").replace("*", "%2A").replace("+", "%2B")


Element = Any
"""A Python number or an `Expression`."""


def least(x: Element) -> float:
    """Return a lower bound of an element."""
    return x.least if isinstance(x, Expression) else x


def _least(terms: Mapping[tuple[Any, ...], int]) -> float:
    total: float = 0
    for product, factor in terms.items():
        bounds = [_least_of_atom(atom) for atom in product]
        if product and (factor < 0 or min(bounds) < 0):
            return -math.inf
        total += factor * math.prod(bounds)
    return total


def _least_of_atom(atom: tuple[Any, ...]) -> float:
    kind, *operands = atom
    if kind in ("symbol", "dim"):
        return 0
    if kind == "Max":
        return max(map(least, operands))
    if kind == "Min":
        return min(map(least, operands))
    if kind in ("Div", "Mod"):
        return 0 if least(operands[0]) >= 0 and least(operands[1]) > 0 else -math.inf
    if kind in _TRUTHS:
        return 0
    return -math.inf


# -- arithmetic --------------------------------------------------------------------------------------------------------


def _terms(x: Element) -> Mapping[tuple[Any, ...], int]:
    return x.terms if isinstance(x, Expression) else {(): int(x)}


def _element(terms: Mapping[tuple[Any, ...], int]) -> Element | None:
    left = {product: factor for product, factor in terms.items() if factor}
    if len(left) > _MOST_TERMS or any(len(product) > _MOST_TERMS for product in left):
        return None
    if set(left) <= {()}:
        return left.get((), 0)
    expression = Expression(left)
    return expression if expression.atoms <= _MOST_ATOMS else None


def _operation(kind: str, *operands: Element) -> Expression | None:
    """Return the expression of an operator and its operands, or ``None`` if it is too large to track."""
    expression = Expression.atom(kind, *operands)
    return expression if expression.atoms <= _MOST_ATOMS else None


def _add(a: Element, b: Element) -> Element | None:
    total = dict(_terms(a))
    for product, factor in _terms(b).items():
        total[product] = total.get(product, 0) + factor
    return _element(total)


def _multiply(a: Element, b: Element) -> Element | None:
    total: dict[tuple[Any, ...], int] = {}
    for left, m in _terms(a).items():
        for right, n in _terms(b).items():
            product = tuple(sorted((*left, *right), key=_order))
            total[product] = total.get(product, 0) + m * n
    return _element(total)


def _order(atom: tuple[Any, ...]) -> tuple[str, int]:
    return atom[0], hash(atom)


def _negate(x: Element) -> Element | None:
    return _multiply(x, -1)


def _subtract(a: Element, b: Element) -> Element | None:
    return _add(a, _multiply(b, -1))


def quotient(a: Element, b: Element) -> Element | None:
    """Return ``a / b`` if it is an integer for all values of the unknown dimensions; otherwise ``None``."""
    if isinstance(b, Expression) and len(b.terms) > 1:
        return 1 if a == b else None
    if b == 0:
        return None
    ((divisors, by),) = _terms(b).items()
    divided = {}
    for product, factor in _terms(a).items():
        rest = list(product)
        if factor % by or any(divisors.count(atom) > product.count(atom) for atom in divisors):
            return None
        for atom in divisors:
            rest.remove(atom)
        divided[tuple(rest)] = factor // by
    return _element(divided)


def _divide(a: Element, b: Element) -> Element | None:
    # An unknown divisor may be 0 at run time, so only division by a number is known.
    whole = None if isinstance(b, Expression) else quotient(a, b)
    return _operation("Div", a, b) if whole is None and b != 0 else whole


def _mod(a: Element, b: Element) -> Element | None:
    if b == 0:
        return None
    return 0 if not isinstance(b, Expression) and quotient(a, b) is not None else _operation("Mod", a, b)


def _extreme(kind: str, a: Element, b: Element) -> Element | None:
    difference = _subtract(a, b)
    if difference is not None and least(difference) >= 0:
        return a if kind == "Max" else b
    if difference is not None and least(_negate(difference)) >= 0:
        return b if kind == "Max" else a
    return _operation(kind, *sorted((a, b), key=hash))


def _less(a: Element, b: Element) -> Element | None:
    difference = _subtract(b, a)
    if difference is None:
        return None
    if least(difference) >= 1:
        return True
    return False if least(_negate(difference)) >= 0 else _operation("Less", a, b)


def _equal(a: Element, b: Element) -> Element | None:
    difference = _subtract(a, b)
    if difference is None:
        return None
    if least(difference) >= 1 or least(_negate(difference)) >= 1:
        return False
    return True if not isinstance(difference, Expression) and difference == 0 else _operation("Equal", a, b)


def _not(x: Element) -> Element | None:
    if not isinstance(x, Expression):
        return not x
    return x.single[1] if x.single is not None and x.single[0] == "Not" else _operation("Not", x)


def _and(a: Element, b: Element) -> Element | None:
    for one, other in ((a, b), (b, a)):
        if not isinstance(one, Expression):
            return other if one else False
    return a if a == b else _operation("And", *sorted((a, b), key=hash))


def _or(a: Element, b: Element) -> Element | None:
    neither = _two(_and, _not(a), _not(b))
    return None if neither is None else _not(neither)


def _where(condition: Element, a: Element, b: Element) -> Element | None:
    if not isinstance(condition, Expression):
        return a if condition else b
    return a if isinstance(a, Expression) == isinstance(b, Expression) and a == b else None


_TRUTHS = ("Less", "Equal", "Not", "And")

_ARITHMETIC: dict[str, Callable[..., Element | None]] = {
    "Add": _add,
    "Sub": _subtract,
    "Mul": _multiply,
    "Div": _divide,
    "Neg": _negate,
    "Abs": lambda x: x if least(x) >= 0 else None,
    "Less": _less,
    "Greater": lambda a, b: _less(b, a),
    "LessOrEqual": lambda a, b: None if (more := _less(b, a)) is None else _not(more),
    "GreaterOrEqual": lambda a, b: None if (less := _less(a, b)) is None else _not(less),
    "Equal": _equal,
    "Not": _not,
    "And": _and,
    "Or": _or,
    "Where": _where,
}
_FOLDED = {"ReduceProd": (_multiply, 1), "ReduceSum": (_add, 0)}
# Operators that move the elements of their first input unchanged, where the other inputs are numbers; Concat moves those of
# all inputs.
_MOVING = {
    "Identity", "Reshape", "Squeeze", "Unsqueeze", "Transpose", "Expand", "Slice", "Gather", "Split", "Concat", "Compress",
    "Tile", "ScatterElements",
}  # fmt: skip
_KNOWN = {*_ARITHMETIC, *_FOLDED, *_MOVING, "Mod", "Max", "Min", "Cast", "Shape", "Size", "ReduceMax", "ReduceMin", "CumSum"}

_INTEGERS = {ir.DataType.INT32, ir.DataType.INT64}
_NUMBERS = _INTEGERS | {ir.DataType.BOOL, ir.DataType.FLOAT}


# -- values ------------------------------------------------------------------------------------------------------------


def dimension(value: ir.Value, axis: int) -> Element:
    """Return a dimension of a value of known rank."""
    size = value.shape[axis] if value.shape is not None else None
    if isinstance(size, int):
        return size
    name = None if size is None else size.value
    return Expression.atom("dim", value, axis) if name is None else _of_name(name)


def elements(value: ir.Value | None) -> Elements | None:
    """Return the elements of a small tensor, with expressions for unknown ones; ``None`` for other tensors."""
    if value is None or value.dtype not in _NUMBERS:
        return None
    if value.const_value is not None and not value.is_graph_input():
        return value.const_value.numpy().astype(object) if value.const_value.size <= MOST_ELEMENTS else None
    known = getattr(value, "elements", None)
    if known is not None or value.shape is None or not value.shape.is_static():
        return known
    shape = value.shape.numpy()
    if math.prod(shape) > MOST_ELEMENTS:
        return None
    return _array([Expression.atom("element", value, i) for i in range(math.prod(shape))], shape)


_of_name = functools.lru_cache(maxsize=1024)(Expression.of_name)


def _array(items: Sequence[Element | None], shape: Sequence[int]) -> Elements:
    array = np.empty(len(items), object)
    array[:] = items
    return array.reshape(shape)


def numbers(known: Elements | None, dtype: ir.DataType) -> np.ndarray | None:
    """Return the elements as an array of numbers, or ``None`` if one is unknown."""
    if known is None or any(x is None or isinstance(x, Expression) for x in known.reshape(-1)):
        return None
    return np.array(known.tolist(), dtype.numpy()).reshape(known.shape)


def attach(value: Any, known: Elements | None) -> None:
    """Attach the known elements to a value. Elements that are ``None`` become atoms of the value."""
    if known is None or all(x is None for x in known.reshape(-1)):
        return
    items = [Expression.atom("element", value, i) if x is None else x for i, x in enumerate(known.reshape(-1))]
    value.elements = _array(items, known.shape)


Evaluated = list[tuple[Elements, ir.DataType]] | None
"""For each output of a node, its elements (``None`` for an unknown element) and its element type."""


def evaluate(op_type: str, inputs: Sequence[ir.Value | None], attributes: Mapping[str, Any]) -> Evaluated:
    """Compute the known elements of the outputs of a standard ONNX node."""
    if op_type not in _KNOWN or not inputs or inputs[0] is None:
        return None
    if op_type in ("Shape", "Size"):
        return _of_dims(op_type, inputs[0], attributes)
    if not any(getattr(x, "elements", None) is not None for x in inputs) and op_type != "Concat":
        return None
    known = [elements(x) for x in inputs]
    if any(k is None and x is not None for k, x in zip(known, inputs, strict=True)):
        return None
    dtypes = [None if x is None else x.dtype for x in inputs]
    try:
        if op_type in _MOVING:
            return _moved(op_type, known, dtypes, attributes)
        if op_type in ("ReduceProd", "ReduceSum", "ReduceMax", "ReduceMin", "CumSum"):
            return _along(op_type, known, dtypes, attributes)
        return _elementwise(op_type, known, dtypes, attributes)
    except (ArithmeticError, IndexError, TypeError, ValueError):  # ONNX's inference reports contradictory inputs
        return None


def _of_dims(op_type: str, value: ir.Value, attributes: Mapping[str, Any]) -> Evaluated:
    if value.shape is None:
        return None
    dims = [dimension(value, i) for i in range(len(value.shape))]
    if op_type == "Shape":
        dims = dims[attributes.get("start", 0) : attributes.get("end")]
        return [(_array(dims, [len(dims)]), ir.DataType.INT64)] if len(dims) <= MOST_ELEMENTS else None
    return [(_array([_product(dims)], []), ir.DataType.INT64)]


def _moved(op_type: str, known: list[Any], dtypes: list[Any], attributes: Mapping[str, Any]) -> Evaluated:
    moving = len(known) if op_type == "Concat" else 1
    if op_type == "ScatterElements":
        if attributes.get("reduction", "none") != "none":
            return None
        known[1] = numbers(known[1], dtypes[1])
    else:
        known[moving:] = [None if k is None else numbers(k, d) for k, d in zip(known[moving:], dtypes[moving:], strict=True)]
    if any(k is None and d is not None for k, d in zip(known, dtypes, strict=True)):
        return None
    moved = fold(op_type, known, attributes)
    if moved is None:
        return None
    arrays = [m if isinstance(m, np.ndarray) else _array([m], []) for m in moved]  # NumPy unpacks an object from a 0-d array
    return [(array, dtypes[0]) for array in arrays] if all(array.size <= MOST_ELEMENTS for array in arrays) else None


def _along(op_type: str, known: list[Any], dtypes: list[Any], attributes: Mapping[str, Any]) -> Evaluated:
    x, axes = known[0], None if len(known) < 2 or known[1] is None else numbers(known[1], dtypes[1])
    if dtypes[0] not in _INTEGERS or (len(known) > 1 and known[1] is not None and axes is None):
        return None
    if op_type == "CumSum":
        if x.ndim != 1 or attributes.get("exclusive", 0) or attributes.get("reverse", 0):
            return None
        return [(_array(list(_running(x)), x.shape), dtypes[0])]
    if axes is None or axes.size == 0:
        if attributes.get("noop_with_empty_axes", 0):
            return [(x, dtypes[0])]
        axes = np.arange(x.ndim)
    chosen = sorted({int(a) % x.ndim for a in axes.reshape(-1)}) if x.ndim else []
    shape = [d for i, d in enumerate(x.shape) if i not in chosen]
    count = math.prod(x.shape[i] for i in chosen)
    if count == 0:
        return None
    rows = np.moveaxis(x, chosen, range(-len(chosen), 0)).reshape(-1, count) if chosen else x.reshape(-1, 1)
    reduced = [functools.reduce(functools.partial(_two, _reduction(op_type)), row) for row in rows]
    if attributes.get("keepdims", 1):
        shape = [1 if i in chosen else d for i, d in enumerate(x.shape)]
    return [(_array(reduced, shape), dtypes[0])]


def _running(x: Elements) -> Any:
    total: Element | None = 0
    for item in x:
        total = _two(_add, total, item)
        yield total


def _reduction(op_type: str) -> Callable[..., Element | None]:
    if op_type in _FOLDED:
        return _FOLDED[op_type][0]
    return functools.partial(_chosen, op_type.removeprefix("Reduce"))


def _two(function: Callable[..., Element | None], a: Element | None, b: Element | None) -> Element | None:
    return None if a is None or b is None else function(a, b)


def _chosen(kind: str, a: Element, b: Element) -> Element | None:
    if isinstance(a, Expression) or isinstance(b, Expression):
        return _extreme(kind, a, b)
    return max(a, b) if kind == "Max" else min(a, b)


def _elementwise(op_type: str, known: list[Any], dtypes: list[Any], attributes: Mapping[str, Any]) -> Evaluated:
    function = _ARITHMETIC.get(op_type)
    if op_type in ("Max", "Min"):
        function = functools.partial(_many, functools.partial(_chosen, op_type))
    elif op_type == "Mod":
        function = _remainder
    elif op_type == "Cast":
        function = _cast(dtypes[0], ir.DataType(attributes["to"]))
    # Placeholders that are safe divisors allow the usual computation of the numbers.
    plain = [
        np.array([1 if isinstance(x, Expression) else x for x in k.reshape(-1)], d.numpy()).reshape(k.shape)
        for k, d in zip(known, dtypes, strict=True)
    ]
    folded = fold(op_type, plain, attributes)
    if folded is None or folded[0].size > MOST_ELEMENTS:
        return None
    array = np.asarray(folded[0])
    result = array.astype(object)
    floats = any(d == ir.DataType.FLOAT for d in dtypes) and op_type != "Where"
    spread = np.broadcast_arrays(*known)
    for index in np.ndindex(result.shape):
        operands = [k[index] for k in spread]
        if any(isinstance(x, Expression) for x in operands):
            result[index] = None if function is None or floats else function(*operands)
    return [(result, ir.DataType.from_numpy(array.dtype))]


def _many(function: Callable[..., Element | None], *operands: Element) -> Element | None:
    return functools.reduce(functools.partial(_two, function), operands)


def _remainder(a: Element, b: Element) -> Element | None:
    # Runtimes disagree for negative operands, and so do the values of fmod.
    return _mod(a, b) if least(a) >= 0 and least(b) > 0 else None


def _cast(source: ir.DataType, to: ir.DataType) -> Callable[[Element], Element | None]:
    if (source in _INTEGERS and to in _INTEGERS) or source == to:
        return lambda x: x
    if source in _INTEGERS and to == ir.DataType.BOOL:
        return lambda x: True if least(x) > 0 else None
    return lambda x: None


# -- dimensions --------------------------------------------------------------------------------------------------------


def output_dims(
    op_type: str,
    inputs: Sequence[ir.Value | None],
    attributes: Mapping[str, Any],
    inferred: Sequence[Iterable[Any] | None],
) -> list[list[int | str | None] | None]:
    """Return the dimensions of a node's outputs, combining those that its inputs determine with ONNX's inference.

    ``inferred`` is ONNX's result for each output: numbers, names, ``None`` for an unknown dimension, or ``None`` if the rank
    is unknown.
    """
    stated = [None if dims is None else list(dims) for dims in inferred]
    if op_type == "Split":
        return [_combined(a, b) for a, b in zip(stated, _split(inputs, attributes, len(stated)), strict=True)]
    function = _DIMS.get(op_type)
    if function is None or any(x is None for x in inputs):
        return stated
    return [_combined(stated[0], function(inputs, attributes)), *stated[1:]]


def _combined(inferred: list[int | str | None] | None, found: list[Element | None] | None) -> list[int | str | None] | None:
    if found is None or (inferred is not None and len(found) != len(inferred)):
        return inferred
    dims = [_named(x) if isinstance(x, Expression) else x for x in found]
    if any(isinstance(d, int) and d < 0 for d in dims):
        return inferred
    if inferred is None:
        return dims
    return [a if isinstance(a, int) or d is None else d for a, d in zip(inferred, dims, strict=True)]


def _named(x: Expression) -> str | None:
    # An expression that may be negative would lose the lower bound of a dimension.
    return x.name if x.least >= 0 else None


def _dims_of(value: ir.Value | None) -> list[Element] | None:
    return None if value is None or value.shape is None else [dimension(value, i) for i in range(len(value.shape))]


def _reshaped(inputs: Sequence[Any], attributes: Mapping[str, Any]) -> list[Element | None] | None:
    data, target = _dims_of(inputs[0]), elements(inputs[1])
    if target is None or target.ndim != 1:
        return None
    dims: list[Element | None] = list(target)
    if not attributes.get("allowzero", 0):
        for i, x in enumerate(dims):
            if not isinstance(x, Expression) and x == 0:
                dims[i] = data[i] if data is not None and i < len(data) else None
            elif isinstance(x, Expression) and least(x) < 1 and not (data is not None and i < len(data) and data[i] == x):
                dims[i] = None  # a 0 in a target would copy a dimension
    return [_inferred_dimension(data, dims) if not isinstance(x, Expression) and x == -1 else x for x in dims]


def _inferred_dimension(data: list[Element] | None, dims: list[Element | None]) -> Element | None:
    """Return the value of -1 in ``dims``: the remaining elements of ``data``."""
    others = [x for x in dims if isinstance(x, Expression) or x != -1]
    if data is None or any(x is None for x in others):
        return None
    total, taken = _product(data), _product(others)
    return None if total is None or taken is None else quotient(total, taken)


def _product(items: Sequence[Any]) -> Element | None:
    product: Element | None = 1
    for item in items:
        product = _two(_multiply, product, item)
    return product


def _expanded(inputs: Sequence[Any], attributes: Mapping[str, Any]) -> list[Element | None] | None:
    data, target = _dims_of(inputs[0]), elements(inputs[1])
    if data is None or target is None or target.ndim != 1:
        return None
    rank = max(len(data), len(target))
    sides = zip([1] * (rank - len(data)) + data, [1] * (rank - len(target)) + list(target), strict=True)
    return [_broadcast(a, b) for a, b in sides]


def _broadcast(a: Element, b: Element) -> Element | None:
    if isinstance(a, Expression) == isinstance(b, Expression) and a == b:
        return a
    for one, other in ((a, b), (b, a)):
        if not isinstance(one, Expression):
            if one == 1:
                return other
            if isinstance(other, Expression):
                return one  # the other is 1 or equal
    return None


def _of_elements(inputs: Sequence[Any], attributes: Mapping[str, Any]) -> list[Element | None] | None:
    dims = elements(inputs[0])
    return None if dims is None or dims.ndim != 1 else list(dims)


def _ranged(inputs: Sequence[Any], attributes: Mapping[str, Any]) -> list[Element | None] | None:
    bounds = [elements(x) for x in inputs]
    if any(b is None or b.size != 1 for b in bounds) or inputs[0].dtype not in _INTEGERS:
        return None
    start, limit, step = (b.reshape(-1)[0] for b in bounds if b is not None)
    count = _subtract(limit, start) if not isinstance(step, Expression) and step == 1 else None
    return [count if count is not None and least(count) >= 0 else None]


def _tiled(inputs: Sequence[Any], attributes: Mapping[str, Any]) -> list[Element | None] | None:
    data, repeats = _dims_of(inputs[0]), elements(inputs[1])
    if data is None or repeats is None or repeats.shape != (len(data),):
        return None
    return [_multiply(d, r) for d, r in zip(data, repeats, strict=True)]


def _sliced(inputs: Sequence[Any], attributes: Mapping[str, Any]) -> list[Element | None] | None:
    data, others = _dims_of(inputs[0]), [elements(x) for x in inputs[1:]]
    if data is None or any(x is None or x.ndim != 1 for x in others):
        return None
    starts, ends, *more = (list(x) for x in others if x is not None)
    axes = more[0] if more else list(range(len(starts)))
    steps = more[1] if len(more) > 1 else [1] * len(starts)
    dims: list[Element | None] = list(data)
    for start, end, axis, step in zip(starts, ends, axes, steps, strict=True):
        if isinstance(axis, Expression) or not -len(data) <= axis < len(data):
            return None
        size = data[axis]
        unit = not isinstance(step, Expression) and step == 1
        whole = unit and not isinstance(start, Expression) and start == 0
        if not (
            whole
            and (end == size if isinstance(end, Expression) == isinstance(size, Expression) else _exceeds_dimensions(end))
        ):
            dims[axis] = None
    return dims


def _joined(inputs: Sequence[Any], attributes: Mapping[str, Any]) -> list[Element | None] | None:
    parts = [_dims_of(x) for x in inputs]
    ranks = {None if part is None else len(part) for part in parts}
    if None in ranks or len(ranks) != 1:
        return None
    axis = attributes["axis"]
    dims: list[Element | None] = [None] * len(parts[0] or [])
    dims[axis] = functools.reduce(functools.partial(_two, _add), [part[axis] for part in parts if part is not None])
    return dims


def _split(inputs: Sequence[Any], attributes: Mapping[str, Any], count: int) -> list[list[Element | None] | None]:
    data, sizes = _dims_of(inputs[0]), elements(inputs[1]) if len(inputs) > 1 else None
    if data is None or sizes is None or sizes.shape != (count,):
        return [None] * count
    axis = attributes.get("axis", 0) % len(data)
    return [[size if i == axis else None for i in range(len(data))] for size in sizes]


def _exceeds_dimensions(end: Element) -> bool:
    """Whether the end of a Slice exceeds every dimension."""
    return not isinstance(end, Expression) and end >= np.iinfo(np.int32).max


_DIMS: dict[str, Callable[[Sequence[Any], Mapping[str, Any]], list[Element | None] | None]] = {
    "Reshape": _reshaped,
    "Expand": _expanded,
    "ConstantOfShape": _of_elements,
    "Range": _ranged,
    "Tile": _tiled,
    "Slice": _sliced,
    "Concat": _joined,
}


def constant_target(data: ir.Value, target: ir.Value, allowzero: int) -> list[int] | None:
    """Return a constant target for a Reshape without ``allowzero`` that replaces a partially known target, or ``None``.

    An unknown element that equals the same dimension of ``data`` becomes 0 (copied). One other may become -1. For that, a -1
    in the target becomes a number if all other dimensions determine it.
    """
    wanted, dims = elements(target), _dims_of(data)
    if wanted is None or wanted.ndim != 1 or target.const_value is not None:
        return None
    found: list[int] = []
    for i, x in enumerate(wanted):
        size = dims[i] if dims is not None and i < len(dims) else None
        if not isinstance(x, Expression):
            if x == 0 and allowzero and not (isinstance(size, int) and size == 0):
                return None
            found.append(int(x))
        else:
            found.append(0 if isinstance(size, Expression) and size == x else -1)
    given = [i for i, x in enumerate(wanted) if not isinstance(x, Expression) and x == -1]
    rest: Element | None = None
    if len(given) == 1:
        rest, place = _inferred_dimension(dims, list(wanted)), given[0]
        if isinstance(rest, Expression) and dims is not None and place < len(dims) and dims[place] == rest:
            found[place] = 0
        elif isinstance(rest, int) and rest > 0 and found.count(-1) > 1:
            found[place] = rest
    if found.count(-1) > 1:
        return None
    if -1 not in found or (found.index(-1) in given and rest is not None):
        return found
    # ONNX Runtime cannot infer -1 if another dimension may be 0.
    sizes = list(found) if dims is None else dims + [0] * len(found)
    others = [sizes[i] if d == 0 else d for i, d in enumerate(found) if d != -1]
    return None if any(least(d) < 1 for d in others) else found


def copying_target(data: ir.Value, target: ir.Value) -> list[int] | None:
    """Return a target in which 0 copies a dimension of ``data`` instead of each unknown element that equals it.

    Return ``None`` if an unknown element is another number.
    """
    wanted, dims = elements(target), _dims_of(data)
    if wanted is None or wanted.ndim != 1 or dims is None:
        return None
    found = []
    for i, x in enumerate(wanted):
        if isinstance(x, Expression) and not (i < len(dims) and isinstance(dims[i], Expression) and dims[i] == x):
            return None
        found.append(0 if isinstance(x, Expression) else int(x))
    return found


def needless_target(data: ir.Value, target: ir.Value) -> list[int] | None:
    """Return a constant target for an Expand that replaces a partially known one, or ``None``.

    An unknown element that equals the same dimension of ``data`` becomes 1.
    """
    wanted, dims = elements(target), _dims_of(data)
    if wanted is None or wanted.ndim != 1 or target.const_value is not None or dims is None:
        return None
    found = []
    for i, x in enumerate(wanted, len(dims) - len(wanted)):
        if isinstance(x, Expression):
            if i < 0 or not isinstance(dims[i], Expression) or dims[i] != x:
                return None
            x = 1
        found.append(int(x))
    return found
