"""Blobs with a number for each channel."""

from __future__ import annotations

import math

from converters.errors import Malformed, Unsupported
from converters.inference_engine.rule import shaped
from onnx_specops.building import Builder, Value


def count_for_channels(x: Value, blob: Value, what: str) -> int:
    """Return the number of elements of a blob. Raise `Malformed` if it differs from the number of channels."""
    count, channels = _count(blob), _channels(x)
    if channels not in (None, count):
        raise Malformed(f"it has {count} {what} for {channels} channels", "check that the file is intact")
    return count


def by_channel(op: Builder, x: Value, blob: Value, what: str, *, shared: bool = False) -> Value:
    """Return the blob in a shape that broadcasts along the channels, or one element if it is for all channels.

    Args:
        op: the graph builder.
        x: the data.
        blob: the blob.
        what: the content of the blob, for errors.
        shared: whether the first element is for all channels if there are not as many elements as channels.
    """
    if x.rank is None:
        raise Unsupported("the rank of its data is unknown", "set the shape of the model's input with --input-shape")
    count = _count(blob)
    if count == 1 or (shared and count != _channels(x)):
        return shaped(op, op.Slice(blob, [0], [1]), [1])
    return shaped(op, blob, [count_for_channels(x, blob, what), *[1] * (x.rank - 2)])


def _channels(x: Value) -> int | None:
    return None if x.dims is None else x.dims[1 if len(x.dims) > 1 else 0]


def _count(blob: Value) -> int:
    if blob.dims is None or None in blob.dims:
        raise Malformed("the number of its weights is unknown")
    return math.prod(dim for dim in blob.dims if dim is not None)
