"""Sizes of dimensions that a graph reads, and integers that depend on the iteration of a Loop."""

from __future__ import annotations

import onnx_ir as ir

from onnx_specops.graphs import constant_list, dimension

_MAX_STEPS = 16
"""The maximum number of consecutive operators between a tensor and a number that is one of its sizes."""

INTEGERS = (ir.DataType.INT32, ir.DataType.INT64)
_RESHAPES = frozenset(("Identity", "Reshape", "Squeeze", "Unsqueeze"))


def size_read(value: ir.Value) -> tuple[ir.Value, int] | None:
    """Return the tensor and the dimension whose size is the value of an integer with one element."""
    place: int | None = None
    for _ in range(_MAX_STEPS):
        node = value.producer()
        if node is None or node.domain or not node.inputs or node.inputs[0] is None:
            return None
        if node.op_type == "Shape":
            return _dimension(node, place)
        if (node.op_type in _RESHAPES and (place is None or node.op_type == "Identity")) or (
            node.op_type == "Cast" and value.dtype in INTEGERS
        ):
            pass
        elif node.op_type == "Gather" and place is None:
            numbers = constant_list(node.inputs[1])
            if numbers is None or len(numbers) != 1 or node.attributes.get_int("axis", 0) != 0:
                return None
            (place,) = numbers
        else:
            return None
        value = node.inputs[0]
    return None


def parts_of_split(split: ir.Node) -> tuple[int, list[int]] | None:
    """Return the axis of a Split, which is not negative, and the sizes of its results, if all are known."""
    x = split.inputs[0]
    if x is None or x.shape is None:
        return None
    axis = split.attributes.get_int("axis", 0) % len(x.shape)
    sizes = [value.shape[axis] for value in split.outputs if value.shape is not None]
    known = [size for size in sizes if isinstance(size, int)]
    return (axis, known) if len(known) == len(split.outputs) else None


def _dimension(shape: ir.Node, place: int | None) -> tuple[ir.Value, int] | None:
    """Return the dimension that is an element of the result of a Shape, or its only element."""
    (x,) = shape.inputs
    if x is None or x.shape is None:
        return None
    rank = len(x.shape)
    axes = range(rank)[shape.attributes.get_int("start", 0) : shape.attributes.get_int("end", rank)]
    if place is None:
        return (x, axes[0]) if len(axes) == 1 else None
    return (x, axes[place]) if -len(axes) <= place < len(axes) else None


def _root(value: ir.Value, axis: int) -> tuple[ir.Value, int]:
    """Return the first tensor that has a dimension of a tensor."""
    for _ in range(_MAX_STEPS):
        node = value.producer()
        if node is None or node.domain or not node.inputs or (before := node.inputs[0]) is None:
            break
        place = _before(node, before, axis)
        if node.op_type == "Expand" and (read := _expanded(node, axis)) is not None:
            value, axis = read
        elif place is not None:
            value, axis = before, place
        else:
            break
    return value, axis


def _before(node: ir.Node, data: ir.Value, axis: int) -> int | None:
    """Return the dimension of a node's data that a dimension of its result has; ``None`` if it may have another size."""
    rank = None if data.shape is None else len(data.shape)
    if node.op_type in ("Cast", "Identity", "ReverseSequence"):
        return axis
    if node.op_type == "Transpose":
        perm = node.attributes.get_ints("perm", None)
        return None if perm is None else perm[axis]
    if rank is None or node.op_type not in ("Concat", "Slice", "Squeeze", "Unsqueeze"):
        return None
    if node.op_type == "Concat":
        return axis if node.attributes.get_int("axis", 0) % rank != axis else None
    place = 3 if node.op_type == "Slice" else 1
    axes = constant_list(node.inputs[place]) if len(node.inputs) > place else None
    if axes is None:
        return None
    if node.op_type == "Slice":
        return axis if axis not in [one % rank for one in axes] else None
    if node.op_type == "Squeeze":
        return [one for one in range(rank) if one not in [gone % rank for gone in axes]][axis]
    added = [one % (rank + len(axes)) for one in axes]
    return None if axis in added else [one for one in range(rank + len(axes)) if one not in added].index(axis)


def name_sizes(value: ir.Value) -> None:
    """Give the unknown and named dimensions of a value the numbers or names of the tensors that it is computed from."""
    if value.shape is None:
        return
    found: list[int | str | None] = []
    for axis in range(len(value.shape)):
        own = [dimension(*place) for place in (_root(value, axis), (value, axis))]
        found.append(next((dim for dim in own if isinstance(dim, (int, str))), None))
    if found != [dim if isinstance(dim, int) else dim.value for dim in value.shape]:
        value.shape = ir.Shape(found)


def _expanded(expand: ir.Node, axis: int) -> tuple[ir.Value, int] | None:
    """Return the dimension whose size is the number of repetitions of an Expand of one element."""
    data, target = expand.inputs
    result = expand.outputs[0]
    if data is None or target is None or data.shape is None or any(dim != 1 for dim in data.shape) or result.shape is None:
        return None
    while (node := target.producer()) is not None and node.op_type == "Cast" and not node.domain:
        assert node.inputs[0] is not None
        target = node.inputs[0]
    if node is None or node.op_type != "Concat" or node.domain:
        return size_read(target) if len(result.shape) == 1 else None
    parts: list[ir.Value] = []  # for each dimension of the result, the value that has its size
    for part in node.inputs:
        size = part.shape[0] if part is not None and part.shape is not None and len(part.shape) == 1 else None
        if part is None or not isinstance(size, int):
            return None
        parts += [part] * size
    part = parts[axis] if len(parts) == len(result.shape) else None
    return size_read(part) if part is not None and parts.count(part) == 1 else None


def is_same_size(one: tuple[ir.Value, int] | None, other: tuple[ir.Value, int] | None) -> bool:
    """Return whether two dimensions are equal, because they have one name or number, or are that of one tensor."""
    if one is None or other is None:
        return False
    first, second = _root(*one), _root(*other)
    return first == second or dimension(*first) == dimension(*second) or dimension(*one) == dimension(*other)


def is_size(count: ir.Value | None, tensor: ir.Value, axis: int) -> bool:
    """Return whether an integer of one element is the size of a dimension."""
    if count is None or tensor.shape is None:
        return False
    if (known := constant_list(count)) is not None:
        return len(known) == 1 and known[0] == dimension(tensor, axis)
    return is_same_size(size_read(count), (tensor, axis))


def offset(value: ir.Value, iteration: ir.Value) -> int | None:
    """Return the constant that is added to the iteration number; ``None`` for an integer of another kind."""
    added = 0
    for _ in range(_MAX_STEPS):
        if value is iteration:
            return added
        node = value.producer()
        if node is None or node.domain or not node.inputs or node.inputs[0] is None:
            return None
        if node.op_type == "Add":
            one, other = node.inputs
            numbers = constant_list(other)
            if numbers is None or len(numbers) != 1:
                one, numbers = other, constant_list(one)
            if one is None or numbers is None or len(numbers) != 1 or one.dtype not in INTEGERS:
                return None
            added += numbers[0]
            value = one
        elif node.op_type in _RESHAPES or (node.op_type == "Cast" and value.dtype in INTEGERS):
            value = node.inputs[0]
        else:
            return None
    return None
