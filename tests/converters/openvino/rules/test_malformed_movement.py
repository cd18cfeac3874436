"""Malformed layers of shapes, slices, indices, padding, searching, embeddings, random numbers and matrices.

Each ends as a `ConversionError` that names the layer.
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.converters.openvino.rules.malformed import BOOL, I64, assert_named


def _i(*values):
    return np.array(values, np.int64)


S, V, ZERO, ONE = (2, 3), (4,), np.array(0), np.array(1)
SEEDS = 'with_replacement="true" log_probs="false"'
MASKS = 'begin_mask="0,0" end_mask="0,0"'
HUGE = 2**62

# type, opset, attributes, inputs (shape and type, or a constant), the outputs' shapes and types, what is said of it
MALFORMED = [
    ("ShapeOf", "opset3", 'output_type="f31"', [S], ((2,), I64), "not an element type|no known element type"),
    ("ShapeOf", "opset1", 'output_type="i32"', [S], ((2,), I64), "not known"),
    ("ShapeOf", "opset3", "", [S], ((3,), I64), "in the file"),
    ("Reshape", "opset1", "", [S, _i(6)], (6,), "'special_zero' is missing"),
    ("Reshape", "opset1", 'special_zero="false"', [S, _i(4)], (4,), "do not fit together"),
    ("Reshape", "opset1", 'special_zero="true"', [S, _i(0, 0, 0)], (2, 3, 1), "do not fit together"),
    ("Reshape", "opset1", 'special_zero="true"', [S, _i(0, -1, -1)], (2, 3, 1), "do not fit together|in the file"),
    ("Reshape", "opset1", 'special_zero="false"', [S, _i(HUGE, HUGE)], (6,), "do not fit together|in the file"),
    ("Squeeze", "opset1", "", [S, _i(2)], (2, 3), "out of range"),
    ("Squeeze", "opset15", 'allow_axis_skip="maybe"', [S], (2, 3), "neither true nor false"),
    ("Squeeze", "opset1", 'allow_axis_skip="true"', [S], (2, 3), "not known"),
    ("Unsqueeze", "opset1", "", [S, _i(7)], (2, 3, 1), "do not fit together"),
    ("Unsqueeze", "opset1", "", [S], (2, 3, 1), "takes 2"),
    ("Transpose", "opset1", "", [S, _i(0, 0)], (2, 2), "do not fit together"),
    ("Transpose", "opset1", "", [S, _i(0, HUGE)], (2, 2), "do not fit together"),
    ("Transpose", "opset1", "", [S, _i(1, 0)], (2, 3), "in the file"),
    ("Broadcast", "opset3", 'mode="pdpd"', [S, _i(2, 3)], (2, 3), "none of"),
    ("Broadcast", "opset3", 'mode="explicit"', [V, _i(2, 4)], (2, 4), "no axes_mapping"),
    ("Broadcast", "opset3", 'mode="explicit"', [V, _i(2, 4), _i(2)], (2, 4), "does not rise within"),
    ("Broadcast", "opset3", 'mode="explicit"', [S, _i(3, 2), _i(1, 0)], (3, 2), "does not rise within"),
    ("Broadcast", "opset1", 'mode="numpy"', [V, _i(2, 3)], (2, 3), "do not fit together"),
    ("Broadcast", "opset3", 'mode="numpy"', [(), _i(HUGE, HUGE)], (2, 3), "in the file"),
    ("Tile", "opset1", "", [S], S, "takes 2"),
    ("Tile", "opset1", "", [S, _i(1, 1)], (2, 4), "in the file"),
    ("Concat", "opset1", "", [S, S], (4, 3), "'axis' is missing"),
    ("Concat", "opset1", 'axis="2"', [S, S], (4, 3), "do not fit together"),
    ("Concat", "opset1", 'axis="0"', [S, (2, 2)], (4, 3), "do not fit together"),
    ("Concat", "opset1", 'axis="0"', [], S, "no inputs"),
    ("Split", "opset1", 'num_splits="0"', [S, _i(1)], [(2, 3)], "num_splits=0"),
    ("Split", "opset1", 'num_splits="1000000000000"', [S, _i(1)], [(2, 3)], "num_splits=1000000000000"),
    ("Split", "opset1", 'num_splits="2"', [S, _i(1)], [(2, 2), (2, 1)], "3 elements into 2"),
    ("Split", "opset1", 'num_splits="2"', [S, _i(5)], [(1, 3), (1, 3)], "out of range"),
    ("Split", "opset1", 'num_splits="2"', [S, _i(0, 1)], [(1, 3), (1, 3)], "instead of one"),
    ("VariadicSplit", "opset1", "", [S, _i(1), _i(1, 1, 1)], [(2, 2), (2, 1)], "2 outputs and 3"),
    ("VariadicSplit", "opset1", "", [S, _i(1), _i(-1, -1)], [(2, 2), (2, 1)], "split_lengths are"),
    ("VariadicSplit", "opset1", "", [S, _i(1), _i(2, 2)], [(2, 2), (2, 2)], "do not fit together|in the file"),
    ("StridedSlice", "opset1", 'begin_mask="0"', [S, _i(0), _i(1), _i(1)], (1, 3), "'end_mask' is missing"),
    ("StridedSlice", "opset1", MASKS + ' ellipsis_mask="1,1"', [S, _i(0, 0), _i(1, 1), _i(1, 1)], S, "than one ellipsis"),
    ("StridedSlice", "opset1", MASKS, [S, _i(0, 0), _i(1), _i(1, 1)], S, "differ in length"),
    ("StridedSlice", "opset1", MASKS, [S, _i(0, 0), _i(1, 1), _i(0, 1)], (1, 1), "strides is 0"),
    ("StridedSlice", "opset1", 'begin_mask="0" end_mask="0"', [(), _i(0), _i(1), _i(1)], (1,), "1 axes of 0"),
    ("StridedSlice", "opset1", MASKS + ' shrink_axis_mask="a"', [S, _i(0, 0), _i(1, 1), _i(1, 1)], S, "not a whole number"),
    ("Slice", "opset8", "", [S, _i(0), _i(1), _i(0)], (1, 3), "steps is 0"),
    ("Slice", "opset8", "", [S, _i(0), _i(1), _i(1), _i(4)], (1, 3), "do not fit together"),
    ("Slice", "opset8", "", [S, _i(0), _i(1)], (1, 3), "takes 4 to 5"),
    ("SliceScatter", "opset15", "", [S, S, _i(0), _i(1), _i(0)], S, "steps is 0"),
    ("Range", "opset4", 'output_type="boolean"', [((), I64)] * 3, (3,), "in the file"),
    ("Range", "opset4", "", [((), I64)] * 3, ((3,), I64), "'output_type' is missing"),
    ("Range", "opset1", "", [((2,), I64)] * 3, ((3,), I64), "instead of one"),
    ("Eye", "opset9", 'output_type="i64"', [_i(2, 3), _i(2), _i(0)], ((2, 2), I64), "instead of one|do not fit together"),
    ("OneHot", "opset1", "", [(V, I64), _i(3), (), ()], (4, 3), "'axis' is missing"),
    ("OneHot", "opset1", 'axis="2"', [(V, I64), _i(3), (), ()], (4, 3), "out of range"),
    ("OneHot", "opset16", 'axis="1" negative_indices_mode="wrap"', [(V, I64), _i(3), (), ()], (4, 3), "none of"),
    ("OneHot", "opset1", 'axis="1" negative_indices_mode="normalize"', [(V, I64), _i(3), (), ()], (4, 3), "not known"),
    ("Pad", "opset1", 'pad_mode="wrap"', [S, _i(0, 0), _i(0, 0)], S, "none of"),
    ("Pad", "opset12", 'pad_mode="edge"', [S, _i(0), _i(0, 0)], S, "do not fit together"),
    ("Pad", "opset1", 'pad_mode="constant"', [S, _i(1, 0, 0), _i(0, 0, 0)], S, "do not fit together"),
    ("Pad", "opset12", 'pad_mode="constant"', [S, _i(1, 0), _i(0, 0), (2,)], (3, 3), "instead of one"),
    ("Reverse", "opset1", 'mode="axes"', [S, _i(0)], S, "none of"),
    ("Reverse", "opset1", 'mode="index"', [S, _i(2)], S, "do not fit together"),
    ("ReverseSequence", "opset1", 'batch_axis="1" seq_axis="1"', [S, _i(1, 1)], S, "both 1"),
    ("ReverseSequence", "opset1", 'batch_axis="0" seq_axis="2"', [S, _i(1, 1)], S, "out of range"),
    ("Roll", "opset7", "", [S, _i(1), _i(2)], S, "out of range"),
    ("Roll", "opset7", "", [S, _i(1, 2, 3), _i(0, 1)], S, "do not fit together"),
    ("ShuffleChannels", "opset1", 'group="0"', [S], S, "group is 0"),
    ("ShuffleChannels", "opset1", 'group="2"', [S], S, "do not fit together"),
    ("ShuffleChannels", "opset1", 'axis="2"', [S], S, "out of range"),
    ("SpaceToDepth", "opset1", 'mode="blocks"', [(1, 1, 2, 2)], (1, 4, 1, 1), "none of"),
    ("SpaceToDepth", "opset1", 'mode="depth_first" block_size="0"', [(1, 1, 2, 2)], (1, 4, 1, 1), "block_size is 0"),
    ("SpaceToDepth", "opset1", 'mode="depth_first" block_size="3"', [(1, 1, 2, 2)], (1, 4, 1, 1), "do not fit together"),
    ("DepthToSpace", "opset1", 'mode="depth_first" block_size="-2"', [(1, 4, 1, 1)], (1, 1, 2, 2), "block_size is -2"),
    ("DepthToSpace", "opset1", 'mode="depth_first" block_size="99999999999"', [(1, 4, 1, 1)], (1, 1, 2, 2), "block_size is"),
    ("SpaceToBatch", "opset2", "", [S, _i(1, 0), _i(0, 0), _i(0, 0)], S, "block_shape is"),
    ("SpaceToBatch", "opset2", "", [S, _i(1), _i(0, 0), _i(0, 0)], S, "block_shape is"),
    ("BatchToSpace", "opset2", "", [S, _i(1, -2), _i(0, 0), _i(0, 0)], S, "block_shape is"),
    ("BatchToSpace", "opset2", "", [S, _i(1, 4), _i(0, 0), _i(0, 0)], S, "do not fit together|in the file"),
    ("Gather", "opset8", "", [S, _i(0), _i(2)], (1, 3), "out of range"),
    ("Gather", "opset8", 'batch_dims="1"', [S, _i(0, 1), _i(0)], (2,), "lies within"),
    ("Gather", "opset8", 'batch_dims="-3"', [S, _i(0, 1), _i(0)], (2,), "out of range"),
    ("Gather", "opset1", 'batch_dims="0"', [S, _i(0), _i(0)], (1, 3), "not known"),
    ("Gather", "opset7", "", [S, S, _i(0)], (2, 3, 3), "where integers belong"),
    ("GatherElements", "opset6", "", [S, (S, I64)], S, "'axis' is missing"),
    ("GatherElements", "opset6", 'axis="0"', [S, ((2,), I64)], S, "do not fit together|in the file"),
    ("GatherND", "opset8", 'batch_dims="2"', [S, ((2, 1), I64)], (2,), "do not fit together"),
    ("GatherND", "opset5", "", [S, ((2, 3), I64)], (2,), "do not fit together"),
    ("GatherTree", "opset1", "", [((3, 1, 2), I64)] * 3, ((3, 1, 2), I64), "takes 4"),
    ("ScatterUpdate", "opset3", "", [S, _i(0), (1, 3), _i(3)], S, "out of range|do not fit together"),
    ("ScatterElementsUpdate", "opset12", 'reduction="sub"', [S, (S, I64), S, _i(0)], S, "none of"),
    ("ScatterElementsUpdate", "opset3", 'reduction="sum"', [S, (S, I64), S, _i(0)], S, "not known"),
    ("ScatterElementsUpdate", "opset12", "", [S, (S, I64), S, _i(2)], S, "out of range"),
    ("ScatterNDUpdate", "opset15", 'reduction="mean"', [S, ((1, 1), I64), (1, 3)], S, "none of"),
    ("ScatterNDUpdate", "opset3", "", [S, ((1, 3), I64), (1,)], S, "3 indices for each"),
    ("EmbeddingBagOffsetsSum", "opset3", "", [S, (V, I64)], S, "takes 3 to 5"),
    ("EmbeddingBagOffsets", "opset15", 'reduction="max"', [S, (V, I64), ((2,), I64)], S, "none of"),
    ("EmbeddingBagOffsets", "opset15", 'reduction="mean"', [S, (V, I64), ((2,), I64), ZERO, V], S, "does not take"),
    ("EmbeddingBagPacked", "opset15", 'reduction="mean"', [S, ((2, 2), I64), (2, 2)], S, "does not take"),
    ("EmbeddingBagPackedSum", "opset3", 'reduction="sum"', [S, ((2, 2), I64)], S, "not known"),
    ("EmbeddingSegmentsSum", "opset3", "", [S, (V, I64), (V, I64)], S, "takes 4 to 6"),
    ("SegmentMax", "opset16", "", [S, _i(0, 1)], S, "'fill_mode' is missing"),
    ("SegmentMax", "opset16", 'fill_mode="ONE"', [S, _i(0, 1)], S, "none of"),
    ("SparseFillEmptyRows", "opset16", "", [V, _i(2, 2), ((4, 2), I64)], [((4, 2), I64), V, ((2,), BOOL)], "takes 4"),
    ("SearchSorted", "opset15", 'right_mode="2"', [V, V], (V, I64), "neither true nor false"),
    ("SearchSorted", "opset15", 'output_type="i8"', [V, V], (V, I64), "in the file"),
    ("Bucketize", "opset3", 'with_right_bound="left"', [V, V], (V, I64), "neither true nor false"),
    ("NonZero", "opset3", 'output_type="index"', [V], ((1, None), I64), "not an element type|no known element type"),
    ("Unique", "opset10", "", [S, _i(2)], [S, V, V, V], "out of range"),
    ("Unique", "opset10", "", [S, ((), I64)], [S, V, V, V], "not a constant"),
    ("TopK", "opset11", 'axis="1" mode="most" sort="value"', [S, ONE], [(2, 1), ((2, 1), I64)], "none of"),
    ("TopK", "opset11", 'axis="1" mode="max" sort="none" stable="true"', [S, ONE], [(2, 1), (2, 1)], "without an order"),
    ("TopK", "opset3", 'axis="1" mode="max" sort="value" stable="true"', [S, ONE], [(2, 1), (2, 1)], "not known"),
    ("TopK", "opset11", 'axis="2" mode="max" sort="value"', [S, ONE], [(2, 1), (2, 1)], "do not fit together"),
    ("TopK", "opset11", 'axis="1" mode="max" sort="value"', [S, np.array(9)], [(2, 9), (2, 9)], "together|in the file"),
    ("Multinomial", "opset13", SEEDS, [S, _i(1)], ((2, 1), I64), "'convert_type' is missing"),
    ("Multinomial", "opset13", SEEDS + ' convert_type="i64" global_seed="x"', [S, _i(1)], ((2, 1), I64), "whole number"),
    ("RandomUniform", "opset8", 'output_type="i8"', [_i(2, 3), (), ()], S, "do not fit together|in the file"),
    ("RandomUniform", "opset8", 'output_type="f32" alignment="NUMPY"', [_i(2, 3), (), ()], S, "none of"),
    ("Einsum", "opset7", 'equation="ij,jk->ik"', [S], S, "2 operands"),
    ("Einsum", "opset7", 'equation="i1->i"', [S], S, "not well-formed"),
    ("Einsum", "opset7", 'equation="ij->k"', [S], S, "no operand has"),
    ("Einsum", "opset7", 'equation="ijk->k"', [S], (3,), "do not fit together"),
    ("Einsum", "opset7", 'equation="ijk...->k"', [S], (3,), "does not fit the ranks"),
    ("Col2Im", "opset15", 'strides="0,1"', [(1, 4, 4), _i(3, 3), _i(2, 2)], (1, 1, 3, 3), "strides are"),
    ("Col2Im", "opset15", 'dilations="1"', [(1, 4, 4), _i(3, 3), _i(2, 2)], (1, 1, 3, 3), "dilations are"),
    ("Inverse", "opset14", 'adjoint="yes"', [(2, 2)], (2, 2), "neither true nor false"),
    ("Inverse", "opset14", "", [(2, 2)], (2, 3), "in the file"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "version", "data", "inputs", "outputs", "message"),
    MALFORMED,
    ids=[f"{row[0]}-{i}" for i, row in enumerate(MALFORMED)],
)
def test_a_malformed_layer_is_named(tmp_path, kind, version, data, inputs, outputs, message):
    assert_named(tmp_path, kind, version, data, inputs, outputs, message)
