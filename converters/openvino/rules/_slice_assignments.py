"""Updates of a slice, as OpenVINO's PyTorch frontend writes `x[:, 1:] = y`."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from onnx_specops.building import Builder, Value

_SHAPES = frozenset(("Reshape", "Squeeze", "Unsqueeze"))
_STEPS = frozenset((*_SHAPES, "Gather", "Slice"))


@dataclass(frozen=True)
class AssignedSlice:
    """A slice of a tensor, whose data are a flat view.

    Attributes:
        dims: the dimensions of the tensor.
        starts, stops: the first index of the slice along each axis, and the one after its last.
    """

    dims: list[int]
    starts: list[int]
    stops: list[int]

    @property
    def sizes(self) -> list[int]:
        """The dimensions of the slice."""
        return [stop - start for start, stop in zip(self.starts, self.stops, strict=True)]

    def replaced(self, op: Builder, data: Value, updates: Value) -> Value:
        """Emit the data with other elements in the slice."""
        tensor, result = op.Reshape(data, self.dims), op.Reshape(updates, self.sizes)
        cut = [axis for axis, size in enumerate(self.sizes) if size != self.dims[axis]]
        for place, axis in reversed(list(enumerate(cut))):
            outer, parts = cut[:place], [result]
            starts, stops = ([limits[one] for one in outer] for limits in (self.starts, self.stops))
            if self.starts[axis]:
                before = op.Slice(tensor, [*starts, 0], [*stops, self.starts[axis]], [*outer, axis])
                parts = [before, *parts]
            if self.stops[axis] < self.dims[axis]:
                after = op.Slice(tensor, [*starts, self.stops[axis]], [*stops, self.dims[axis]], [*outer, axis])
                parts = [*parts, after]
            result = op.Concat(*parts, axis=axis)
        return op.Reshape(result, [-1])


def assigned_slice(data: Value, indices: Value) -> AssignedSlice | None:
    """Return the slice whose positions are the indices of a vector, or ``None`` for other indices."""
    if data.rank != 1 or data.dims is None or not data.dims[0] or not indices.dims or indices.dims[-1] != 1:
        return None
    given = indices.constant
    if given is not None and not given.size:
        return None
    found = _of_positions(data.dims[0], indices) if given is None else _of_constants(data.dims[0], given)
    return found if found is not None and all(size > 0 for size in found.sizes) else None


def _of_constants(size: int, positions: np.ndarray) -> AssignedSlice | None:
    """Return the slice with constant positions of a tensor whose dimensions are the quotients of the strides."""
    heads = positions.reshape(-1)
    strides: list[int] = []
    counts: list[int] = []
    while heads.size > 1 or not strides:
        stride = int(heads[1] - heads[0]) if strides else 1
        if stride <= 0 or (strides and stride % strides[-1]):
            return None
        others = np.flatnonzero(np.diff(heads) != stride)
        count = int(others[0]) + 1 if others.size else heads.size
        if heads.size % count:
            return None
        rows = heads.reshape(-1, count)
        if (rows != rows[:, :1] + stride * np.arange(count)).any():
            return None
        heads, strides, counts = rows[:, 0], [*strides, stride], [*counts, count]
    if size % strides[-1]:
        return None
    dims = [larger // less for larger, less in zip([size, *reversed(strides)], [*reversed(strides)], strict=False)]
    if not 0 <= heads[0] < size:
        return None
    starts = [int(at) for at in np.unravel_index(int(heads[0]), dims)]
    stops = [start + count for start, count in zip(starts, reversed(counts), strict=True)]
    return AssignedSlice(dims, starts, stops) if all(stop <= dim for stop, dim in zip(stops, dims, strict=True)) else None


def _of_positions(size: int, indices: Value) -> AssignedSlice | None:
    """Return the slice whose positions are computed by slices of a Range in the shape of the tensor."""
    nodes, value = [], indices
    while (node := value.producer()) is not None and node.op_type in _STEPS and isinstance(node.inputs[0], Value):
        nodes.append(node)
        value = node.inputs[0]
    if node is None or node.op_type != "Range" or [_number(given) for given in node.inputs] != [0, size, 1]:
        return None
    dims, starts, stops, axes = [size], [0], [size], [0]  # `axes`: those of the tensor that the value still has
    cut = flat = False
    for node in reversed(nodes):
        result, parameters = node.outputs[0], [_array(given) for given in node.inputs[1:]]
        if not isinstance(result, Value) or result.dims is None or None in result.dims:
            return None
        if node.op_type in _SHAPES:
            flat = cut
            if not cut:
                dims = [dim or 0 for dim in result.dims]
                starts, stops, axes = [0] * len(dims), list(dims), list(range(len(dims)))
            continue
        if flat or any(given is None for given in parameters):
            return None
        cut = True
        chosen = _chosen(node.op_type, node.attributes.get_int("axis", 0), parameters, len(axes))
        if chosen is None:
            return None
        for place, start, stop in chosen:
            axis = axes[place]
            length, first = stops[axis] - starts[axis], starts[axis]
            begin, end = (min(max(at + length if at < 0 else at, 0), length) for at in (start, stop))
            starts[axis], stops[axis] = first + begin, first + max(begin, end)
        if node.op_type == "Gather":
            del axes[chosen[0][0]]
    return AssignedSlice(dims, starts, stops)


def _chosen(operator: str, axis: int, parameters: list[np.ndarray | None], rank: int) -> list[tuple[int, int, int]] | None:
    """Return the axes that a Slice or Gather cuts, with the first index of each and the one after the last."""
    given = [[int(number) for number in np.reshape(one, -1)] for one in parameters if one is not None]
    if operator == "Gather":
        (indices,) = parameters
        if indices is None or indices.ndim:
            return None
        at = int(indices)
        return [(axis % rank, at, at + 1 or np.iinfo(np.int64).max)]
    starts, stops, *more = given
    axes = more[0] if more else list(range(len(starts)))
    if len(more) > 1 and any(step != 1 for step in more[1]):
        return None
    return [(one % rank, start, stop) for one, start, stop in zip(axes, starts, stops, strict=True)]


def _array(value: object) -> np.ndarray | None:
    return value.constant if isinstance(value, Value) else None


def _number(value: object) -> int | None:
    array = _array(value)
    return int(array.reshape(-1)[0]) if array is not None and array.size == 1 else None
