"""The vision encoder of Phi-3 vision and Phi-3.5 vision as one graph.

An image is split into crops of one size. optimum-intel encodes the crops, and combines their features, the features of the
complete image, and separators in Python. Here, all steps are part of the graph, for any number of images.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx_ir as ir

from converters.folders.inserting import inserted
from converters.folders.path_errors import path_error
from converters.source import Emitted
from onnx_specops.building import Builder, Value, new_value
from onnx_specops.replacing import replace_value

SIZES = "image_sizes"
CROP = 336
"""The height and width of a crop."""

_MERGE = 2  # patches in a row and a column that become one token


@dataclass(frozen=True)
class PhiVision:
    """Completes the graph of ``openvino_vision_embeddings_model.xml``.

    Attributes:
        projection: the IR that computes the features of tokens.
        config: config.json.
        path: its path.
    """

    projection: Path
    config: Mapping[str, Any]
    path: Path

    def complete(self, emitted: Emitted, encoder: Path) -> None:
        """Change the inputs to crops ``[images, crops, 3, 336, 336]`` and ``image_sizes`` ``[images, 2]``.

        The first crop of an image is the whole image. Crops that it does not have follow its last one.

        Args:
            emitted: the emitted model; changed in place.
            encoder: its IR, which errors name.

        Raises:
            ConversionError: the separators are missing, or inputs and outputs differ from those that optimum-intel exports.
        """
        graph = emitted.model.graph
        shapes = [value.shape for value in (*graph.inputs, *graph.outputs)]
        if len(graph.inputs) != 1 or len(graph.outputs) != 1 or [shape and len(shape) for shape in shapes] != [4, 3]:
            message = (
                "it does not compute the patches [images, patches, width] of images [images, channels, height, width] only"
            )
            raise path_error(encoder, message, "convert it without --genai")
        assert shapes[1] is not None
        count, width = shapes[1][1], shapes[1][2]
        side = round(count**0.5) if isinstance(count, int) else 0
        if not isinstance(width, int) or side == 0 or side**2 != count or side % _MERGE:
            raise path_error(encoder, f"its output is {shapes[1]}; expected a square of patches", "export it again")
        separators = np.stack([self._separator(name, width * _MERGE**2) for name in ("sub_GN", "glb_GN")])
        (flat,), (patches,) = graph.inputs, graph.outputs
        crops, sizes = new_value(flat.dtype, None, "pixel_values"), new_value(ir.DataType.INT64, None, SIZES)
        crops.shape, sizes.shape = ir.Shape([None, None, 3, CROP, CROP]), ir.Shape([None, 2])
        before = Builder(graph, root=Builder.of_existing(graph), before=next(iter(graph)))
        before.scope = "crops"
        each = before.Reshape(crops, [-1, 3, CROP, CROP])
        graph.inputs[:] = [crops, sizes]
        flat.name = before.unique("crop")
        replace_value(flat, each)

        op = Builder.of_existing(graph)
        op.scope = "tokens"
        tokens = side // _MERGE
        blocks = op.Reshape(patches, [-1, tokens, _MERGE, tokens, _MERGE, width])
        table = op.Reshape(op.Transpose(blocks, perm=[0, 1, 3, 2, 4, 5]), [-1, width * _MERGE**2])
        places = _places(op, sizes, op.Shape(crops, start=1, end=2), tokens)
        rows = op.Unsqueeze(op.Gather(op.Concat(separators, table, axis=0), places), [0])
        given, features = inserted(graph, self.projection, "projection")
        op = Builder.of_existing(graph)
        op.scope = "features"
        replace_value(given, rows)
        graph.outputs[0] = op.Squeeze(features, [0])

    def _separator(self, name: str, size: int) -> np.ndarray:
        """Return a separator ``[size]``."""
        try:
            values = np.asarray(self.config.get(name) or (), np.float32).reshape(-1)
        except (TypeError, ValueError):
            values = np.zeros(0, np.float32)
        if values.size != size:
            raise path_error(self.path, f"its {name} has {values.size} numbers; expected {size}", "export it again")
        return values


def _places(op: Builder, sizes: ir.Value, crops: Value, tokens: int) -> Value:
    """Return the row of each token of all images in a table of two separators and ``tokens`` rows and columns of every crop.

    The tokens of an image are those of its crops, which form one image, with a separator after each row, the second
    separator, and those of the whole image, with a separator after each row, too.
    """
    high, wide = (op.Unsqueeze(op.Gather(op.Div(sizes, CROP), np.int64(axis), axis=1), [1]) for axis in (0, 1))
    row_length = op.Add(op.Mul(wide, tokens), 1)
    own = op.Mul(op.Mul(high, tokens), row_length)
    length = op.Add(own, 1 + tokens * (tokens + 1))
    number = op.Unsqueeze(op.Range(0, op.ReduceMax(length, keepdims=0), 1), [0])
    first = op.Unsqueeze(op.Mul(op.Range(0, op.Squeeze(op.Shape(sizes, end=1), [0]), 1), op.Squeeze(crops, [0])), [1])

    def in_crop(crop: Value | int, row: Value, column: Value) -> Value:
        return op.Add(op.Mul(op.Add(op.Mul(op.Add(first, crop), tokens), row), tokens), op.Add(column, 2))

    row, column = op.Div(number, row_length), op.Mod(number, row_length)
    crop = op.Add(op.Mul(op.Div(row, tokens), wide), op.Div(column, tokens))
    inner = in_crop(op.Add(crop, 1), op.Mod(row, tokens), op.Mod(column, tokens))
    inner = op.Where(op.Equal(column, op.Sub(row_length, 1)), np.int64(0), inner)

    after = op.Sub(number, op.Add(own, 1))
    row, column = op.Div(after, tokens + 1), op.Mod(after, tokens + 1)
    whole = op.Where(op.Equal(column, tokens), np.int64(0), in_crop(0, row, column))

    places = op.Where(op.Less(number, own), inner, op.Where(op.Equal(number, own), np.int64(1), whole))
    return op.Compress(op.Reshape(places, [-1]), op.Reshape(op.Less(number, length), [-1]), axis=0)
