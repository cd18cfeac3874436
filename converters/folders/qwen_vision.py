"""The vision encoder of Qwen2-VL, Qwen2.5-VL, Qwen3-VL and Qwen3.5 as one graph.

optimum-intel splits the encoder into the embedding of patches, the table of positions (Qwen3-VL, Qwen3.5) and the rest, and
computes the positions, windows and masks of the patches in Python from ``image_grid_thw``. Here, these steps are part of the
graph, for one image or video.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx_ir as ir

from converters.folders.inserting import inserted
from converters.folders.path_errors import path_error
from converters.source import Emitted
from onnx_specops.building import Builder, Value, new_value
from onnx_specops.replacing import replace_value

PATCHES, GRID = "pixel_values", "image_grid_thw"
_HIDDEN, _MASK, _ROTATION = "hidden_states", "attention_mask", "rotary_pos_emb"
_WINDOW_MASK, _WINDOWS = "window_attention_mask", "window_index"
_THETA = 10000.0


@dataclass(frozen=True)
class QwenVision:
    """Completes the graph of ``openvino_vision_embeddings_merger_model.xml``.

    Attributes:
        patches: the IR that embeds patches.
        merge: the number of patches in a row and a column that become one token.
        window: the number of tokens in a row and a column of a window.
        table: the IR with the table of positions, which is added to the embeddings of patches; ``None`` without one.
        side: the number of rows and columns of that table.
        layers: the number of layers of the decoder that add features; ``0`` if there is only one output.
    """

    patches: Path
    merge: int
    window: int
    table: Path | None = None
    side: int = 0
    layers: int = 0

    def complete(self, emitted: Emitted, merger: Path) -> None:
        """Change the inputs to ``pixel_values`` ``[patches, elements]`` and ``image_grid_thw`` ``[1, 3]``.

        The features of other layers follow those of the first in the last dimension of the output.

        Args:
            emitted: the emitted model; changed in place.
            merger: its IR, which errors name.

        Raises:
            ConversionError: its inputs differ from those that optimum-intel exports.
        """
        graph = emitted.model.graph
        inputs = {value.name or "": value for value in graph.inputs}
        expected = {_HIDDEN, _MASK, _ROTATION}
        if inputs.keys() not in (expected, expected | {_WINDOW_MASK, _WINDOWS}):
            message = f"its inputs are {', '.join(inputs)}; expected {', '.join(sorted(expected))}"
            raise path_error(merger, message, "convert it without --genai")
        width = inputs[_ROTATION].shape
        if width is None or not isinstance(width[-1], int) or width[-1] % 2:
            raise path_error(merger, f"the width of its {_ROTATION} is not a constant even number", "export it again")
        self._join_features(graph, merger)
        first = next(iter(graph))
        grid = new_value(ir.DataType.INT64, (1, 3), GRID)
        root = Builder.of_existing(graph)
        op = Builder(graph, root=root, before=first)
        op.scope = "positions"
        positions = _Positions(op, grid, self.merge, self.window)
        made: dict[str, ir.Value] = {_MASK: positions.frame_mask(), _ROTATION: positions.angles(int(width[-1]))}
        if _WINDOWS in inputs:
            made[_WINDOWS], made[_WINDOW_MASK] = positions.windows()
        nearest = None if self.table is None else positions.nearest(self.side)
        patches, made[_HIDDEN] = inserted(graph, self.patches, "patches", before=first)
        patches.name = PATCHES
        if self.table is not None and nearest is not None:
            places, entries = inserted(graph, self.table, "position_table", before=first)
            replace_value(places, nearest[0])
            op = Builder(graph, root=Builder.of_existing(graph), before=first)
            op.scope = "position_table"
            position = op.ReduceSum(op.Mul(entries, op.Unsqueeze(nearest[1], [2])), np.array([0]), keepdims=0)
            made[_HIDDEN] = op.Add(made[_HIDDEN], position)
        for name, value in inputs.items():
            graph.inputs.remove(value)
            replace_value(value, made[name])
        graph.inputs.extend([patches, grid])

    def _join_features(self, graph: ir.Graph, merger: Path) -> None:
        """Concatenate the features for all layers: ``[tokens, width]`` and ``[layers, tokens, width]``."""
        *rest, last = (value.shape for value in graph.outputs)
        if not self.layers and not rest:
            return
        if len(rest) != 1 or last is None or len(last) != 3 or last[0] != self.layers or not isinstance(last[2], int):
            message = f"its outputs have the shapes {', '.join(map(str, [*rest, last]))}"
            raise path_error(merger, f"{message}; expected features and those of {self.layers} layers", "export it again")
        op = Builder.of_existing(graph)
        op.scope = "layers"
        whole, others = graph.outputs
        ordered = op.Reshape(op.Transpose(others, perm=[1, 0, 2]), [-1, self.layers * last[2]])
        graph.outputs[:] = [op.Concat(whole, ordered, axis=1)]


class _Positions:
    """The positions of an image's patches, which are sorted by token.

    Args:
        op: emits the nodes.
        grid: ``[1, 3]``, the numbers of frames, rows and columns of patches.
        merge, window: see `QwenVision`.
    """

    def __init__(self, op: Builder, grid: ir.Value, merge: int, window: int) -> None:
        self._op, self._merge, self._window = op, merge, window
        self._frames, self._rows, self._columns = op.Split(op.Reshape(grid, [3]), num_outputs=3, outputs=3)

    def frame_mask(self) -> Value:
        """Return ``[1, patches, patches]``: 0 within a frame, otherwise minus infinity."""
        op = self._op
        size = op.Mul(self._rows, self._columns)
        count = op.Mul(self._frames, size)
        return self._mask(op.Div(op.Range(0, op.Squeeze(count, [0]), 1), size))

    def angles(self, width: int) -> Value:
        """Return the rotary angles ``[patches, width]``, the first half by row, the second half by column."""
        op = self._op
        exponents = np.arange(0, width, 2, dtype=np.float32) / np.float32(width)
        frequencies = (1.0 / (np.float32(_THETA) ** exponents)).astype(np.float32)
        both = []
        for count, place in ((self._rows, 1), (self._columns, 0)):
            each = op.Unsqueeze(op.Range(0, op.Squeeze(count, [0]), 1), [place])
            numbers = op.Cast(self._in_order(each), to=ir.DataType.FLOAT)
            both.append(op.Mul(op.Unsqueeze(numbers, [1]), frequencies[None]))
        return op.Concat(*both, axis=1)

    def nearest(self, side: int) -> tuple[Value, Value]:
        """Return the four nearest entries of a table of positions, and their weights, ``[4, patches]`` each.

        The table has ``side`` rows and columns, which are stretched over the image.
        """
        op = self._op
        floors, following, parts = [], [], []
        for count, axis in ((self._rows, 1), (self._columns, 0)):
            number = op.Cast(op.Range(0, op.Squeeze(count, [0]), 1), to=ir.DataType.FLOAT)
            steps = op.Max(op.Cast(op.Sub(count, 1), to=ir.DataType.FLOAT), np.float32(1))
            place = op.Mul(number, op.Div(np.float32(side - 1), steps))
            floor = op.Cast(op.Min(op.Floor(place), np.float32(side - 1)), to=ir.DataType.INT64)
            floors.append(op.Unsqueeze(floor, [axis]))
            following.append(op.Unsqueeze(op.Min(op.Add(floor, 1), np.int64(side - 1)), [axis]))
            parts.append(op.Unsqueeze(op.Sub(place, op.Cast(floor, to=ir.DataType.FLOAT)), [axis]))
        entries, weights = [], []
        for row, high in ((floors[0], op.Sub(np.float32(1), parts[0])), (following[0], parts[0])):
            for column, wide in ((floors[1], op.Sub(np.float32(1), parts[1])), (following[1], parts[1])):
                entries.append(op.Unsqueeze(self._in_order(op.Add(op.Mul(row, side), column)), [0]))
                weights.append(op.Unsqueeze(self._in_order(op.Mul(high, wide)), [0]))
        return op.Concat(*entries, axis=0), op.Concat(*weights, axis=0)

    def _in_order(self, each: Value) -> Value:
        """Return ``[patches]`` for values by row and column, for every frame."""
        op = self._op
        whole = op.Expand(each, op.Concat(self._rows, self._columns, axis=0))
        tokens = [op.Div(self._rows, self._merge), op.Div(self._columns, self._merge)]
        blocks = op.Reshape(whole, op.Concat(tokens[0], [self._merge], tokens[1], [self._merge], axis=0))
        return op.Tile(op.Reshape(op.Transpose(blocks, perm=[0, 2, 1, 3]), [-1]), self._frames)

    def windows(self) -> tuple[Value, Value]:
        """Return the tokens sorted by window ``[tokens]``, and ``[1, patches, patches]``: 0 within a window, otherwise minus
        infinity, for patches in this order.
        """
        op = self._op
        rows, columns = op.Div(self._rows, self._merge), op.Div(self._columns, self._merge)
        wide = op.Div(op.Add(columns, self._window - 1), self._window)
        high = op.Div(op.Add(rows, self._window - 1), self._window)
        frame, row, column = (
            op.Unsqueeze(op.Range(0, op.Squeeze(count, [0]), 1), axes)
            for count, axes in ((self._frames, [1, 2]), (rows, [0, 2]), (columns, [0, 1]))
        )
        place = op.Add(op.Mul(op.Div(row, self._window), wide), op.Div(column, self._window))
        window = op.Reshape(op.Add(op.Mul(frame, op.Mul(high, wide)), place), [-1])
        count = op.Shape(window)
        keys = op.Add(op.Mul(window, count), op.Range(0, op.Squeeze(count, [0]), 1))
        _, order = op.TopK(keys, count, largest=0)
        patches = op.Unsqueeze(op.Gather(window, order), [1])
        each = op.Reshape(op.Expand(patches, op.Concat(count, [self._merge**2], axis=0)), [-1])
        return order, self._mask(each)

    def _mask(self, groups: Value) -> Value:
        """Return 0 within a group, otherwise minus infinity."""
        op = self._op
        same = op.Equal(op.Unsqueeze(groups, [0, 1]), op.Unsqueeze(groups, [0, 2]))
        return op.Where(same, np.float32(0), np.float32(-np.inf))
