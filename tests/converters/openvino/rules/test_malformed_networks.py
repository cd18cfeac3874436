"""Malformed layers of convolutions, poolings, normalizations, resizing, recurrence, attention, products and transforms.

Each raises a `ConversionError` that names the layer.
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.converters.openvino.rules.malformed import I64, assert_reported, rows


def _i(*values):
    return np.array(values, np.int64)


X, W, Y = (1, 2, 5, 5), (3, 2, 3, 3), (1, 3, 3, 3)
GROUPED, BITS = (2, 3, 1, 3, 3), (3, 2, 3, 3)
CONV = 'strides="1,1" dilations="1,1" pads_begin="0,0" pads_end="0,0"'
HUGE = "4611686018427387904"
POOL = 'strides="2,2" pads_begin="0,0" pads_end="0,0" kernel="2,2"'
AVERAGE = POOL + ' exclude-pad="true"'
POOLED = (1, 2, 2, 2)
INDICES = (POOLED, I64)
NORMAL = [X, (2,), (2,), (2,), (2,)]
RESIZE = 'mode="nearest" shape_calculation_mode="sizes"'
LSTM = 'hidden_size="4"'
CELL = [(2, 3), (2, 4), (2, 4), (16, 3), (16, 4), (16,)]
STATES = [(2, 4), (2, 4)]
SEQUENCE = [(2, 7, 3), (2, 1, 4), ((2,), I64), (1, 12, 3), (1, 12, 4), (1, 12)]
OUTPUTS = [(2, 1, 7, 4), (2, 1, 4)]
FRAMES = 'transpose_frames="false"'
BINARY = CONV + ' mode="xnor-popcount" pad_value="0"'
LSTMS = [*SEQUENCE[:2], (2, 1, 4), SEQUENCE[2], (1, 16, 3), (1, 16, 4), (1, 16)]
PATCHES = 'sizes="2,2" strides="1,1" rates="1,1" auto_pad="valid"'
DEFORMED = [X, (1, 18, 3, 3), W]

# type, opset, attributes, inputs (shape and type, or a constant), the outputs' shapes and types, the message
MALFORMED = [
    ("Convolution", "opset1", CONV.replace("strides", "steps"), [X, W], Y, "'steps'|steps='1,1' is not known"),
    ("Convolution", "opset1", 'strides="1,1" dilations="1,1"', [X, W], Y, "pads_begin or pads_end is missing"),
    ("Convolution", "opset1", CONV.replace('strides="1,1"', 'strides="0,1"'), [X, W], Y, "out of range"),
    ("Convolution", "opset1", CONV.replace('strides="1,1"', 'strides="1"'), [X, W], Y, "differ in length"),
    ("Convolution", "opset1", CONV.replace('dilations="1,1"', f'dilations="1,{HUGE}"'), [X, W], Y, "out of range"),
    ("Convolution", "opset1", CONV.replace('pads_end="0,0"', f'pads_end="-{HUGE},0"'), [X, W], Y, "out of range"),
    ("Convolution", "opset1", CONV + ' auto_pad="same"', [X, W], Y, "not one of"),
    ("Convolution", "opset1", CONV + ' output_padding="1,0"', [X, W], Y, "has no output_padding"),
    ("Convolution", "opset1", CONV, [X], Y, "takes 2"),
    ("Convolution", "opset1", CONV, [X, (3, 4, 3, 3)], Y, "2 channels, but its kernel has 4"),
    ("Convolution", "opset1", CONV, [X, (3, 2, 3)], Y, "spatial dimensions"),
    ("Convolution", "opset1", CONV, [(1, 2, 5), W], Y, "the rank 3"),
    ("Convolution", "opset1", CONV, [X, (3, 2, 7, 3)], (1, 3, 1, 3), "does not fit into"),
    ("Convolution", "opset1", CONV.replace('pads_begin="0,0"', 'pads_begin="-3,0"'), [X, W], Y, "out of range"),
    ("Convolution", "opset1", CONV, [X, W], (1, 3, 4, 4), "in the file"),
    ("Convolution", "opset1", CONV, [X, (3, 2, 3, 0)], (1, 3, 3, 6), "has no elements"),
    ("GroupConvolution", "opset1", CONV, [X, W], Y, "the rank 4"),
    ("GroupConvolution", "opset1", CONV, [X, (2, 3, 1, 3, 0)], (1, 6, 3, 6), "has no elements"),
    ("GroupConvolution", "opset1", CONV, [(1, 0, 5, 5), (2, 3, 0, 3, 3)], (1, 6, 3, 3), "has no elements"),
    ("GroupConvolution", "opset1", CONV, [X, (0, 3, 1, 3, 3)], Y, "0 groups"),
    ("GroupConvolution", "opset1", CONV, [X, (4, 3, 1, 3, 3)], Y, "its kernel has 4"),
    ("GroupConvolution", "opset1", CONV + ' group="2"', [X, GROUPED], (1, 6, 3, 3), "group='2' is not known"),
    ("ConvolutionBackpropData", "opset1", CONV + ' output_padding="1"', [X, (2, 3, 3, 3)], Y, "output_padding is"),
    ("ConvolutionBackpropData", "opset1", CONV + ' output_padding="-1,0"', [X, (2, 3, 3, 3)], Y, "output_padding is"),
    ("ConvolutionBackpropData", "opset1", CONV, [X, (2, 3, 3)], Y, "spatial dimensions"),
    ("ConvolutionBackpropData", "opset1", CONV, [X, (4, 3, 3, 3)], (1, 3, 7, 7), "2 channels|are inconsistent"),
    ("ConvolutionBackpropData", "opset1", CONV, [X, (2, 3, 3, 3), _i(7, 7, 7)], (1, 3, 7, 7), "output_shape|inconsistent"),
    ("ConvolutionBackpropData", "opset1", CONV, [X, (2, 3, 3, 0)], (1, 3, 7, 4), "has no elements"),
    ("GroupConvolutionBackpropData", "opset1", CONV, [X, (2, 3, 3, 3)], Y, "the rank 4"),
    ("GroupConvolutionBackpropData", "opset1", CONV, [X, (2, 1, 2, 0, 3)], (1, 4, 4, 7), "has no elements"),
    ("BinaryConvolution", "opset1", CONV + ' mode="xnor" pad_value="0"', [X, BITS], Y, "not one of"),
    ("BinaryConvolution", "opset1", CONV + ' mode="xnor-popcount"', [X, BITS], Y, "'pad_value' is missing"),
    ("DeformableConvolution", "opset8", CONV + ' group="0"', DEFORMED, Y, "out of range"),
    ("DeformableConvolution", "opset8", CONV + ' group="1" deformable_group="-1"', DEFORMED, Y, "out of range"),
    ("DeformableConvolution", "opset1", CONV + ' bilinear_interpolation_pad="true"', DEFORMED, Y, "is not known"),
    ("DeformableConvolution", "opset8", CONV, [X, W], Y, "takes 3 to 4"),
    ("DeformableConvolution", "opset8", CONV + ' group="1"', [X, (1, 0, 3, 6), (3, 2, 3, 0)], Y, "has no elements"),
    ("DeformableConvolution", "opset1", CONV, [*DEFORMED, (1, 9, 3, 3)], Y, "takes 3"),
    ("AvgPool", "opset1", POOL, [X], POOLED, "'exclude_pad' is missing"),
    ("AvgPool", "opset1", AVERAGE + ' rounding_type="ceil_torch"', [X], POOLED, "not one of"),
    ("AvgPool", "opset14", AVERAGE + ' dilations="1,1"', [X], POOLED, "is not known"),
    ("AvgPool", "opset1", AVERAGE.replace('kernel="2,2"', 'kernel="2"'), [X], POOLED, "does not fit"),
    ("AvgPool", "opset1", AVERAGE.replace('kernel="2,2"', 'kernel="0,2"'), [X], POOLED, "does not fit"),
    ("AvgPool", "opset1", AVERAGE.replace('kernel="2,2"', f'kernel="2,{HUGE}"'), [X], POOLED, "does not fit into"),
    ("MaxPool", "opset8", POOL + ' axis="4"', [X], [POOLED, INDICES], "out of range"),
    ("MaxPool", "opset8", POOL + ' index_element_type="u8"', [X], [POOLED, INDICES], "instead of i32 or i64"),
    ("MaxPool", "opset1", POOL + ' axis="1"', [X], POOLED, "is not known"),
    ("MaxPool", "opset8", POOL, [X], POOLED, "1 outputs where MaxPool gives 2"),
    ("MaxPool", "opset1", POOL, [(1, 2, 1, 5)], POOLED, "does not fit into"),
    ("AdaptiveAvgPool", "opset8", "", [X, _i(2, 2, 2)], POOLED, "output_shape has"),
    ("AdaptiveAvgPool", "opset8", "", [X, _i(0, 2)], POOLED, "output_shape is"),
    ("AdaptiveMaxPool", "opset8", 'index_element_type="f32"', [X, _i(2, 2)], [POOLED, INDICES], "instead of i32"),
    ("BatchNormInference", "opset5", "", NORMAL, X, "'epsilon' is missing"),
    ("BatchNormInference", "opset5", 'epsilon="small"', NORMAL, X, "not a number"),
    ("BatchNormInference", "opset5", 'epsilon="1e-5"', NORMAL[:4], X, "takes 5"),
    ("BatchNormInference", "opset5", 'epsilon="1e-5"', [X, *[(3,)] * 4], X, "2 channels|are inconsistent"),
    ("MVN", "opset6", 'eps="1e-5" normalize_variance="true" eps_mode="beside"', [X, _i(2)], X, "not one of"),
    ("MVN", "opset6", 'eps="1e-5" normalize_variance="true" eps_mode="inside_sqrt"', [X, _i(4)], X, "inconsistent|range"),
    ("MVN", "opset2", 'eps="1e-5"', [(X, I64)], (X, I64), "normalizes INT64"),
    ("NormalizeL2", "opset1", 'eps="1e-5" eps_mode="add"', [(X, I64), _i(1)], (X, I64), "normalizes INT64"),
    ("LRN", "opset1", 'alpha="1" beta="1" bias="1" size="3"', [(X, I64), _i(1)], (X, I64), "normalizes INT64"),
    ("GroupNormalization", "opset12", 'num_groups="2" epsilon="1e-5"', [(X, I64), _i(1, 1), _i(0, 0)], (X, I64), "INT64"),
    ("FakeQuantize", "opset1", 'levels="9"', [(X, I64), *map(_i, (0, 9, 0, 9))], (X, I64), "quantizes INT64"),
    ("MVN", "opset2", 'across_channels="true"', [X], X, "'eps' is missing"),
    ("NormalizeL2", "opset1", 'eps="1e-5" eps_mode="min"', [X, _i(1)], X, "not one of"),
    ("NormalizeL2", "opset1", 'eps="1e-5" eps_mode="max"', [X, _i(7)], X, "are inconsistent|range"),
    ("GroupNormalization", "opset12", 'num_groups="0" epsilon="1"', [X, (2,), (2,)], X, "multiple of num_groups=0"),
    ("GroupNormalization", "opset12", 'num_groups="3" epsilon="1"', [X, (2,), (2,)], X, "multiple of num_groups=3"),
    ("LRN", "opset1", 'alpha="1" beta="1" bias="1" size="0"', [X, _i(1)], X, "size is 0"),
    ("LRN", "opset1", 'alpha="1" beta="1" bias="1"', [X, _i(1)], X, "'size' is missing"),
    ("LRN", "opset1", 'alpha="1" beta="1" bias="1" size="3"', [X, _i(5)], X, "axes are"),
    ("Interpolate", "opset1", 'axes="2,3" mode="area"', [X, _i(7, 7)], (1, 2, 7, 7), "not one of"),
    ("Interpolate", "opset1", 'axes="2,7" mode="nearest"', [X, _i(7, 7)], (1, 2, 7, 7), "axes are|inconsistent"),
    ("Interpolate", "opset1", 'axes="2,3" mode="nearest"', [X, _i(7)], (1, 2, 7, 7), "are inconsistent|1 sizes"),
    ("Interpolate", "opset4", RESIZE, [X, _i(7, 7), (2,)], (1, 2, 7, 7), "2 sizes or scales for 4 axes"),
    ("Interpolate", "opset11", RESIZE, [X, (4,), _i(2, 3)], (1, 2, None, None), "4 sizes or scales for 2 axes"),
    ("Interpolate", "opset11", RESIZE, [X, _i(7, 7), _i(2, 2)], (1, 2, 7, 7), "axes are"),
    ("Interpolate", "opset11", RESIZE, [X, _i(7, 7), _i(2, -1)], (1, 2, 7, 7), "axes are"),
    ("Interpolate", "opset11", RESIZE + ' pads_begin="-1"', [X, _i(7, 7), _i(2, 3)], (1, 2, 7, 7), "do not fit the rank"),
    ("Interpolate", "opset4", 'mode="bilinear_pillow" shape_calculation_mode="sizes"', [X, _i(7), (1,)], X, "not one of"),
    ("Interpolate", "opset11", RESIZE, [X, _i(9, 7), _i(2, 3)], (1, 2, 7, 7), "in the file"),
    ("GridSample", "opset9", 'mode="linear"', [X, (1, 4, 4, 2)], (1, 2, 4, 4), "not one of"),
    ("GridSample", "opset9", 'mode="bilinear"', [X, (1, 4, 4, 3)], (1, 2, 4, 4), "inconsistent|3 numbers"),
    ("RNNCell", "opset1", 'hidden_size="0"', [(2, 3), (2, 4), (4, 3), (4, 4), (4,)], (2, 4), "hidden_size is 0"),
    ("GRUCell", "opset3", 'hidden_size="4" clip="-1"', [(2, 3), (2, 4), (12, 3), (12, 4), (12,)], (2, 4), "clip is -1"),
    ("LSTMCell", "opset4", LSTM + ' activations="sigmoid,tanh"', CELL, STATES, "2 activations instead of 3"),
    ("LSTMCell", "opset4", LSTM + ' activations="sigmoid,tanh,selu"', CELL, STATES, "not one of"),
    ("LSTMCell", "opset4", LSTM + ' input_forget="true"', CELL, STATES, "is not known"),
    ("LSTMCell", "opset4", LSTM, CELL[:5], STATES, "takes 6"),
    ("LSTMCell", "opset4", LSTM, [*CELL[:3], (12, 3), *CELL[4:]], STATES, "instead of|are inconsistent"),
    ("GRUSequence", "opset5", LSTM, SEQUENCE, OUTPUTS, "'direction' is missing"),
    ("GRUSequence", "opset5", LSTM + ' direction="sideways"', SEQUENCE, OUTPUTS, "not one of"),
    ("GRUSequence", "opset5", LSTM + ' direction="bidirectional"', SEQUENCE, OUTPUTS, "instead of|inconsistent|in the file"),
    ("GRUSequence", "opset5", LSTM + ' direction="forward"', [(2, 7), *SEQUENCE[1:]], OUTPUTS, "instead of|inconsistent"),
    ("ScaledDotProductAttention", "opset13", 'causal="false"', [(1, 4, 8), (1, 5, 7), (1, 5, 8)], (1, 4, 8), "inconsistent"),
    ("GroupedMatMul", "opset17", "", [(7, 4), (5, 4), ((3,), I64)], (7, 5), "instead of .G, N, K"),
    ("GroupedMatMul", "opset17", "", [(7, 4), (3, 5, 6), ((3,), I64)], (7, 5), "instead of|4 is not 6"),
    ("DFT", "opset7", "", [(2, 5, 2), _i(2)], (2, 5, 2), "axes are"),
    ("DFT", "opset7", "", [(2, 5, 2), _i(1, -1)], (2, 5, 2), "axes are"),
    ("DFT", "opset7", "", [(2, 5, 3), _i(1)], (2, 5, 3), "instead of two"),
    ("IDFT", "opset7", "", [(2, 5, 2)], (2, 5, 2), "takes 2 to 3"),
    ("RDFT", "opset9", "", [(2, 5), _i(1), _i(4, 4)], (2, 3, 2), "2 is not 1"),
    ("RDFT", "opset9", "", [(2, 5), _i(1), _i(0)], (2, 1, 2), "signal_size|inconsistent"),
    ("IRDFT", "opset9", "", [(2, 5, 2), _i(1), _i(-4)], (2, 8), "signal_size|inconsistent"),
    ("STFT", "opset15", "", [(2, 40), (8,), np.array(8), np.array(4)], (2, 9, 5, 2), "'transpose_frames' is missing"),
    ("STFT", "opset15", 'transpose_frames="false"', [(2, 2, 40), (8,), np.array(8), np.array(4)], (2, 9, 5, 2), "rank 3"),
    ("STFT", "opset15", 'transpose_frames="false"', [(2, 40), (8,), np.array(8), np.array(0)], (2, 9, 5, 2), "frame_step"),
    ("ISTFT", "opset16", 'center="true"', [(5, 9, 2), (8,), np.array(8), np.array(4)], (32,), "'normalized' is missing"),
    ("ISTFT", "opset16", 'center="true" normalized="1"', [(9, 2), (8,), np.array(8), np.array(4)], (32,), "the rank 2"),
    ("GroupConvolution", "opset1", CONV, [(1, 2, 5), GROUPED], (1, 6, 3, 3), "the rank 3"),
    ("GroupConvolutionBackpropData", "opset1", CONV, [X, (3, 1, 2, 3, 3)], (1, 6, 7, 7), "2 channels|inconsistent"),
    ("ConvolutionBackpropData", "opset1", CONV.replace('"1,1"', '"0,1"', 1), [X, (2, 3, 3, 3)], Y, "out of range"),
    ("BinaryConvolution", "opset1", BINARY, [X, (3, 4, 3, 3)], Y, "2 channels, but its kernel has 4"),
    ("BinaryConvolution", "opset1", BINARY, [(1, 2, 2, 5), BITS], Y, "does not fit into"),
    ("DeformableConvolution", "opset8", CONV + ' group="1"', [X, (1, 16, 3, 3), W], Y, "inconsistent|in the file"),
    ("DeformableConvolution", "opset8", CONV + ' group="1"', [(1, 2, 5), (1, 18, 3, 3), W], Y, "the rank 3"),
    ("AvgPool", "opset16", AVERAGE + ' dilations="0,1"', [X], POOLED, "out of range"),
    ("AvgPool", "opset1", AVERAGE.replace('strides="2,2"', 'strides="2"'), [X], POOLED, "differ in length"),
    ("AvgPool", "opset1", AVERAGE, [X], (1, 2, 3, 2), "in the file"),
    ("MaxPool", "opset14", POOL + ' rounding_type="nearest"', [X], [POOLED, INDICES], "not one of"),
    ("AdaptiveAvgPool", "opset8", "", [X, _i(2, 2)], (1, 2, 2, 3), "in the file"),
    ("AdaptiveMaxPool", "opset8", "", [X, _i(2, -2)], [POOLED, INDICES], "output_shape is"),
    ("GroupNormalization", "opset12", 'num_groups="1" epsilon="1"', [X, (3,), (2,)], X, "inconsistent"),
    ("NormalizeL2", "opset1", 'eps="some" eps_mode="max"', [X, _i(1)], X, "not a number"),
    ("GRN", "opset1", 'bias="1"', [(4,)], (4,), "inconsistent|range"),
    ("Interpolate", "opset4", RESIZE + ' cube_coeff="a"', [X, _i(7, 7), (2,), _i(2, 3)], (1, 2, 7, 7), "not a number"),
    ("Interpolate", "opset4", RESIZE + ' coordinate_transformation_mode="x"', [X, _i(7), (1,)], X, "not one of"),
    ("Interpolate", "opset11", RESIZE + ' nearest_mode="round"', [X, _i(7), _i(2)], X, "not one of"),
    ("Interpolate", "opset11", RESIZE, [X, _i(-7, 7), _i(2, 3)], (1, 2, 7, 7), "sizes are|is not possible|inconsistent"),
    ("RNNSequence", "opset5", LSTM, SEQUENCE, OUTPUTS, "'direction' is missing"),
    ("RNNSequence", "opset5", LSTM + ' direction="forward"', SEQUENCE, OUTPUTS, "instead of"),
    ("LSTMSequence", "opset5", LSTM + ' direction="reverse" clip="-1"', LSTMS, [*OUTPUTS, (2, 1, 4)], "clip is -1"),
    ("LSTMSequence", "opset5", LSTM + ' direction="bidirectional"', LSTMS, [*OUTPUTS, (2, 1, 4)], "instead of"),
    ("LSTMCell", "opset1", LSTM, [*CELL, (5,)], STATES, "instead of"),
    ("LSTMCell", "opset1", LSTM + ' weights_format="fioc"', CELL, STATES, "not one of"),
    ("GRUCell", "opset3", 'hidden_size="4" linear_before_reset="2"', CELL[:5], (2, 4), "neither true nor false"),
    ("GRUCell", "opset3", 'hidden_size="4"', [(2, 3), (2, 5), (12, 3), (12, 4)], (2, 4), "instead of"),
    ("RNNCell", "opset1", 'hidden_size="4" activations="tanh,tanh"', CELL[:2] + [(4, 3), (4, 4)], (2, 4), "2 activations"),
    ("ScaledDotProductAttention", "opset13", 'causal="maybe"', [(1, 4, 8)] * 3, (1, 4, 8), "neither true nor false"),
    ("ScaledDotProductAttention", "opset13", 'causal="0"', [(4, 8), (8,), (8,)], (4, 8), "the rank 1"),
    ("GroupedMatMul", "opset17", "", [(3, 7, 4), (3, 5, 4), ((3,), I64)], (7, 5), "instead of"),
    ("DFT", "opset7", "", [(2, 5, 2), _i(2, 2)], (2, 5, 2), "axes are"),
    ("RDFT", "opset9", "", [(2, 5), _i(-3)], (2, 3, 2), "axes are"),
    ("STFT", "opset15", FRAMES, [(2, 40), (8,), np.array(0), np.array(4)], (2, 5, 9, 2), "frame_size is 0"),
    ("STFT", "opset15", FRAMES, [(2, 40), (8,), np.array(8), np.array(4)], (2, 8, 9, 2), "in the file"),
    ("ISTFT", "opset16", 'center="true" normalized="1"', [(5, 9, 2), (8,), np.array(8), np.array(-4)], (32,), "frame_step"),
    ("MatMul", "opset1", "", [(2, 3), (4, 5)], (2, 5), "inconsistent"),
    ("MatMul", "opset1", 'transpose_a="yes"', [(2, 3), (3, 5)], (2, 5), "neither true nor false"),
    ("MatMul", "opset1", 'transpose_b="true"', [(2, 3), (3, 3)], (3, 2), "in the file"),
    ("Einsum", "opset7", 'equation="ab,bc->ac"', [(2, 3), (4, 5)], (2, 5), "inconsistent|elements along one"),
    ("Einsum", "opset7", 'equation="...a,...b->..."', [(2, 3), (4, 5)], (5,), "elements along one"),
    ("Inverse", "opset14", "", [(2, 3)], (2, 3), "square"),
    ("PRelu", "opset1", "", [X, (3,)], X, "does not broadcast"),
    ("Softmax", "opset8", 'axis="4"', [X], X, "inconsistent|range"),
    ("Softmax", "opset1", 'axis="-1"', [X], X, "is negative"),
    ("LogSoftmax", "opset5", 'axis="-5"', [X], X, "inconsistent|range"),
    ("HardSigmoid", "opset1", "", [X, (2,), (1,)], X, "must be one number"),
    ("Swish", "opset4", "", [X, (3,)], X, "must be one number"),
    ("Gelu", "opset7", 'approximation_mode="sigmoid"', [X], X, "not one of"),
    ("ExtractImagePatches", "opset3", PATCHES.replace('sizes="2,2"', 'sizes="2"'), [X], (1, 8, 4, 4), "two positive"),
    ("ExtractImagePatches", "opset3", PATCHES.replace('rates="1,1"', 'rates="1,0"'), [X], (1, 8, 4, 4), "two positive"),
    ("ExtractImagePatches", "opset3", PATCHES.replace("valid", "explicit"), [X], (1, 8, 4, 4), "not one of"),
    ("ExtractImagePatches", "opset3", PATCHES.replace('"2,2"', '"9000,2"'), [X], (1, 8, 4, 4), "9000 elements"),
    ("ExtractImagePatches", "opset3", PATCHES, [(1, 2, 5)], (1, 8, 4, 4), "inconsistent|the rank 3|range"),
    ("ReorgYolo", "opset2", 'stride="0"', [X], X, "is not positive"),
    ("ReorgYolo", "opset2", 'stride="2,2"', [(1, 4, 4, 4)], (1, 16, 2, 2), "not an integer"),
    ("Pad", "opset1", 'pad_mode="wrap"', [X, _i(0, 0, 0, 0), _i(0, 0, 0, 0)], X, "not one of"),
    ("Pad", "opset12", 'pad_mode="edge"', [X, _i(0, 0, 0), _i(0, 0, 0, 0)], X, "inconsistent|instead of|in the file"),
]  # fmt: skip


@pytest.mark.parametrize("row", rows(MALFORMED))
def test_a_malformed_layer_is_reported(tmp_path, row):
    assert_reported(tmp_path, *row)
