"""Compare layers that become several standard operators, or a slow one, with OpenVINO.

    python -m benchmarks.layers                # a table: OpenVINO, the converted model in ONNX Runtime
    python -m benchmarks.layers --only pool    # layers whose name contains it
    python -m benchmarks.layers --json

See `benchmarks.operators` for layers that become operators of the domain.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import numpy as np

from benchmarks.operators import Layer, compare_layers


def _rng() -> np.random.Generator:
    return np.random.default_rng(0)


def _f32(*shape: int) -> np.ndarray:
    return _rng().standard_normal(shape).astype(np.float32)


def _ints(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def _bits() -> Any:
    import openvino as ov

    kernel = _rng().integers(0, 256, (128 * 128 * 9) // 8).astype(np.uint8)
    return ov.op.Constant(ov.Tensor(kernel, [128, 128, 3, 3], ov.Type.u1), shared_memory=False)


def convolutions() -> Iterator[Layer]:
    """Convolutions of unusual kinds."""
    window = {"strides": [1, 1], "pads_begin": [1, 1], "pads_end": [1, 1], "dilations": [1, 1]}
    yield Layer(
        "BinaryConvolution, 128 x 28 x 28",
        "opset1",
        {**window, "mode": "xnor-popcount", "pad_value": 0.0},
        [(_f32(1, 128, 28, 28) > 0).astype(np.float32)],
        [_bits],
    )
    yield Layer(
        "DeformableConvolution, 256 x 28 x 28",
        "opset8",
        {**window, "auto_pad": "explicit", "group": 1, "deformable_group": 1, "bilinear_interpolation_pad": True},
        [_f32(1, 256, 28, 28), _f32(1, 18, 28, 28)],
        [_f32(256, 256, 3, 3)],
    )
    yield Layer("Col2Im, 64 x 9 x 3,136 to 56 x 56", "opset15", window, [_f32(1, 576, 3136)], [_ints(56, 56), _ints(3, 3)])
    patches = {"rates": [1, 1], "auto_pad": "same_upper"}
    yield Layer(
        "ExtractImagePatches, 64 x 56 x 56, 3 x 3",
        "opset3",
        {"sizes": [3, 3], "strides": [1, 1], **patches},
        [_f32(1, 64, 56, 56)],
    )
    yield Layer(
        "ExtractImagePatches, 3 x 224 x 224, every 16 pixels",
        "opset3",
        {"sizes": [16, 16], "strides": [16, 16], **patches},
        [_f32(1, 3, 224, 224)],
    )


def images() -> Iterator[Layer]:
    """Sampling, pooling and tiling of images."""
    grid = np.clip(_f32(1, 128, 128, 2) * 0.6, -1.1, 1.1)
    for mode in ("bilinear", "bicubic", "nearest"):
        attributes = {"align_corners": False, "mode": mode, "padding_mode": "zeros"}
        yield Layer(f"GridSample, {mode}, 64 x 128 x 128", "opset9", attributes, [_f32(1, 64, 128, 128), grid])
    for size in (7, 5, 1):
        yield Layer(
            f"AdaptiveAvgPool, 512 x 28 x 28 to {size} x {size}", "opset8", {}, [_f32(1, 512, 28, 28)], [_ints(size, size)]
        )
    yield Layer(
        "AdaptiveMaxPool, 512 x 28 x 28 to 5 x 5", "opset8", {"index_element_type": "i32"}, [_f32(1, 512, 28, 28)],
        [_ints(5, 5)],
    )  # fmt: skip
    yield Layer(
        "MaxPool, 64 x 112 x 112, with indices",
        "opset8",
        {
            "strides": [2, 2], "dilations": [1, 1], "pads_begin": [1, 1], "pads_end": [1, 1], "kernel": [3, 3],
            "rounding_type": "floor", "auto_pad": "explicit", "index_element_type": "i64", "axis": 2,
        },
        [_f32(1, 64, 112, 112)],
    )  # fmt: skip
    blocks = [_ints(1, 1, 2, 2), _ints(0, 0, 0, 0), _ints(0, 0, 0, 0)]
    yield Layer("SpaceToBatch, 64 x 128 x 128", "opset2", {}, [_f32(1, 64, 128, 128)], blocks)
    yield Layer("BatchToSpace, 4 x 64 x 64 x 64", "opset2", {}, [_f32(4, 64, 64, 64)], blocks)
    yield Layer("DepthToSpace, 256 x 64 x 64", "opset1", {"mode": "depth_first", "block_size": 2}, [_f32(1, 256, 64, 64)])
    yield Layer("ReorgYolo, 64 x 26 x 26", "opset2", {"stride": [2]}, [_f32(1, 64, 26, 26)])
    yolo = {"axis": 1, "coords": 4, "classes": 80, "end_axis": 3, "num": 9, "do_softmax": False, "mask": [0, 1, 2]}
    yield Layer("RegionYolo, 255 x 52 x 52", "opset1", yolo, [_f32(1, 255, 52, 52)])


def normalizations() -> Iterator[Layer]:
    """Normalizations."""
    mvn = {"normalize_variance": True, "eps": 1e-6, "eps_mode": "inside_sqrt"}
    yield Layer("MVN, 512 x 768", "opset6", mvn, [_f32(1, 512, 768)], [_ints(-1)])
    yield Layer("MVN, 64 x 128 x 128", "opset6", mvn, [_f32(1, 64, 128, 128)], [_ints(2, 3)])
    yield Layer("NormalizeL2, 512 x 38 x 38", "opset1", {"eps": 1e-6, "eps_mode": "add"}, [_f32(1, 512, 38, 38)], [_ints(1)])
    yield Layer("GRN, 64 x 56 x 56", "opset1", {"bias": 1e-6}, [_f32(1, 64, 56, 56)])
    lrn = {"alpha": 1e-4, "beta": 0.75, "bias": 1.0, "size": 5}
    yield Layer("LRN, 96 x 55 x 55", "opset1", lrn, [_f32(1, 96, 55, 55)], [_ints(1)])
    yield Layer(
        "GroupNormalization, 320 x 64 x 64",
        "opset12",
        {"num_groups": 32, "epsilon": 1e-5},
        [_f32(1, 320, 64, 64)],
        [_f32(320), _f32(320)],
    )
    limits = [np.array(x, np.float32) for x in (-2, 2, -2, 2)]
    yield Layer("FakeQuantize, 64 x 112 x 112", "opset1", {"levels": 256}, [_f32(1, 64, 112, 112)], limits)
    for name in ("Gelu", "Mish", "HSwish", "SoftPlus", "Erf", "HSigmoid"):
        opset = {"Gelu": "opset7", "Erf": "opset1", "HSigmoid": "opset5"}.get(name, "opset4")
        attributes = {"approximation_mode": "tanh"} if name == "Gelu" else {}
        yield Layer(f"{name}, 1,000,000 numbers", opset, attributes, [_f32(1000, 1000)])


def sparse() -> Iterator[Layer]:
    """Tables, indices and searches."""
    rng = _rng()
    table, indices = _f32(50000, 64), rng.integers(0, 50000, 8192).astype(np.int32)
    segments = np.sort(rng.integers(0, 512, 8192)).astype(np.int32)
    yield Layer(
        "EmbeddingSegmentsSum, 8,192 of 50,000 x 64", "opset3", {}, [table, indices, segments], [np.array(512, np.int32)]
    )
    bags = indices.reshape(512, 16)
    yield Layer("EmbeddingBagPackedSum, 512 x 16 of 50,000 x 64", "opset3", {}, [table, bags])
    yield Layer("EmbeddingBagPacked, mean, 512 x 16 of 50,000 x 64", "opset15", {"reduction": "mean"}, [table, bags])
    offsets = np.arange(0, 8192, 16).astype(np.int32)
    yield Layer("EmbeddingBagOffsets, mean, 512 of 50,000 x 64", "opset15", {"reduction": "mean"}, [table, indices, offsets])
    filled = np.sort(rng.choice(20000, 10000, replace=False))
    places = np.stack([filled, rng.integers(0, 50, 10000)], axis=1).astype(np.int32)
    yield Layer(
        "SparseFillEmptyRows, 10,000 of 20,000 rows", "opset16", {},
        [_f32(10000), np.array([20000, 50], np.int32), places, np.array(0, np.float32)],
    )  # fmt: skip
    yield Layer(
        "Multinomial, 32 x 1,000 classes, 100 samples",
        "opset13",
        {"convert_type": "i32", "with_replacement": True, "log_probs": False, "global_seed": 1, "op_seed": 2},
        [np.abs(_f32(32, 1000)) + 0.01],
        [np.array([100])],
    )
    yield Layer(
        "Bucketize, 100,000 in 64",
        "opset3",
        {"with_right_bound": True, "output_type": "i32"},
        [_f32(100000)],
        [np.sort(_f32(64))],
    )
    yield Layer("NonZero, 1,000 x 1,000", "opset3", {}, [(_f32(1000, 1000) > 1).astype(np.float32)])
    yield Layer("Unique, 100,000", "opset10", {"sorted": True}, [rng.integers(0, 5000, 100000)])
    yield Layer(
        "TopK, 100 of 1,000 x 1,000",
        "opset11",
        {"axis": 1, "mode": "max", "sort": "value"},
        [_f32(1000, 1000)],
        [np.array(100)],
    )
    yield Layer("CumSum, 1,000 x 1,000", "opset3", {}, [_f32(1000, 1000)], [np.array(1)])
    yield Layer("Roll, 64 x 56 x 56", "opset7", {}, [_f32(64, 56, 56)], [_ints(3, 3), _ints(1, 2)])
    lengths = np.full(64, 90, np.int32)
    yield Layer("ReverseSequence, 64 x 100 x 128", "opset1", {"batch_axis": 0, "seq_axis": 1}, [_f32(64, 100, 128), lengths])
    yield Layer(
        "GatherElements, 1,000 x 1,000", "opset6", {"axis": 1}, [_f32(1000, 1000), rng.integers(0, 1000, (1000, 100))]
    )
    places = np.stack([rng.permutation(100000)[:20000]], axis=1)
    yield Layer("ScatterNDUpdate, 20,000 of 100,000 x 16", "opset15", {}, [_f32(100000, 16), places, _f32(20000, 16)])
    yield Layer(
        "ScatterUpdate, 20,000 of 100,000 x 16", "opset3", {}, [_f32(100000, 16), places[:, 0], _f32(20000, 16)],
        [np.array(0)],
    )  # fmt: skip
    yield Layer("Pad, reflected, 64 x 112 x 112", "opset12", {"pad_mode": "reflect"}, [_f32(1, 64, 112, 112)],
                [_ints(0, 0, 3, 3), _ints(0, 0, 3, 3)])  # fmt: skip


def sequences() -> Iterator[Layer]:
    """Speech, text and signals."""
    probabilities = np.exp(_f32(88, 16, 71))
    yield Layer("CTCGreedyDecoder, 88 steps x 16 x 71 classes", "opset1", {}, [probabilities, np.ones((88, 16), np.float32)])
    yield Layer(
        "CTCGreedyDecoderSeqLen, 16 x 88 steps x 71 classes",
        "opset6",
        {},
        [np.ascontiguousarray(probabilities.transpose(1, 0, 2)), np.full(16, 88, np.int32)],
        [np.array(70, np.int32)],
    )
    window, frame = np.hanning(512).astype(np.float32), [np.array(512), np.array(128)]
    yield Layer("STFT, 64,000 samples in frames of 512", "opset15", {"transpose_frames": False}, [_f32(1, 64000)],
                [window, *frame])  # fmt: skip
    yield Layer(
        "ISTFT, 257 x 497 frames of 512", "opset16", {"center": True, "normalized": False}, [_f32(1, 257, 497, 2)],
        [window, *frame],
    )  # fmt: skip
    for name, shape in (("DFT", (16, 1000, 2)), ("DFT", (4, 256, 256, 2)), ("IDFT", (16, 1024, 2))):
        axes = _ints(*range(1, len(shape) - 1))
        yield Layer(f"{name}, {' x '.join(map(str, shape))}", "opset7", {}, [_f32(*shape)], [axes])
    yield Layer("RDFT, 64 x 1,024", "opset9", {}, [_f32(64, 1024)], [_ints(1)])
    yield Layer("IRDFT, 64 x 513", "opset9", {}, [_f32(64, 513, 2)], [_ints(1)])
    for name, gates, activations in (
        ("LSTMSequence", 4, ["sigmoid", "tanh", "tanh"]),
        ("GRUSequence", 3, ["sigmoid", "tanh"]),
        ("RNNSequence", 1, ["tanh"]),
    ):
        states = [_f32(1, 1, 256)] * (2 if gates == 4 else 1)
        yield Layer(
            f"{name}, 100 steps of 256",
            "opset5",
            {"hidden_size": 256, "direction": "forward", "activations": activations},
            [_f32(1, 100, 256), *states],
            [np.array([100]), *(x * np.float32(0.05) for x in (_f32(1, gates * 256, 256),) * 2), _f32(1, gates * 256)],
        )


FAMILIES = (convolutions, images, normalizations, sparse, sequences)


if __name__ == "__main__":
    sys.exit(compare_layers(FAMILIES, __doc__))
