"""ONNX models, with ONNX Runtime's results."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from onnx import helper, numpy_helper

from tests.conformance.frontends.model import Arrays


def numbers(seed: int, *shape: int, scale: float = 1.0) -> np.ndarray:
    return (np.random.default_rng(seed).standard_normal(shape) * scale).astype(np.float32)


def _model(text: str, weights: Arrays, opset: int = 21, **metadata: str) -> onnx.ModelProto:
    model = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : {opset}]> {text}')
    model.graph.initializer.extend(numpy_helper.from_array(value, name) for name, value in weights.items())
    helper.set_model_props(model, metadata)
    return model


NETWORKS: dict[str, tuple[str, Arrays, Arrays]] = {
    "cnn": (
        """cnn (float[2,3,16,16] image) => (float[2,8] scores) {
            c = Conv <strides: ints = [2, 2], pads: ints = [1, 1, 1, 1]> (image, w)
            b = BatchNormalization (c, s, t, m, v)
            r = LeakyRelu <alpha: float = 0.1> (b)
            p = GlobalAveragePool (r)
            f = Flatten (p)
            scores = Softmax (f)
        }""",
        {
            "w": numbers(1, 8, 3, 3, 3),
            "s": numbers(2, 8),
            "t": numbers(3, 8),
            "m": numbers(4, 8),
            "v": np.abs(numbers(5, 8)),
        },
        {"image": numbers(20, 2, 3, 16, 16)},
    ),
    "recurrent": (
        """recurrent (float[7,2,6] tokens) => (states, hidden, cell) {
            states, hidden, cell = LSTM <hidden_size: int = 4> (tokens, w, r)
        }""",
        {"w": numbers(1, 1, 16, 6, scale=0.4), "r": numbers(2, 1, 16, 4, scale=0.4)},
        {"tokens": numbers(21, 7, 2, 6)},
    ),
    "detection": (
        """detection (float[1,20,4] boxes, float[1,2,20] scores) => (int64[n,3] kept) {
            kept = NonMaxSuppression (boxes, scores, most, iou, least)
        }""",
        {"most": np.array([5], np.int64), "iou": np.array([0.4], np.float32), "least": np.array([0.2], np.float32)},
        {"boxes": np.cumsum(np.abs(numbers(22, 1, 20, 2, 2)), 2).reshape(1, 20, 4), "scores": np.abs(numbers(23, 1, 2, 20))},
    ),
    "embeddings": (
        """embeddings (int64[N,6] tokens) => (float[N,5] mean) {
            rows = Gather (table, tokens)
            mean = ReduceMean <keepdims: int = 0> (rows, one)
        }""",
        {"table": numbers(1, 20, 5), "one": np.array([1], np.int64)},
        {"tokens": np.array([[3, 1, 4, 1, 5, 9], [2, 6, 5, 3, 5, 8]], np.int64)},
    ),
    "control_flow": (
        """control_flow (float[3,4] x, int64 steps) => (float[3,4] result) {
            sum = ReduceSum <keepdims: int = 0> (x)
            positive = Greater (sum, zero)
            started = If (positive) <
                then_branch = yes () => (a) { a = Mul (x, two) },
                else_branch = no () => (b) { b = Abs (x) }
            >
            result = Loop (steps, , started) <
                body = step (int64 k, bool c, float[3,4] v) => (bool go, float[3,4] w) { go = Identity (c)  w = Tanh (v) }
            >
        }""",
        {"zero": np.array(0, np.float32), "two": np.array(2, np.float32)},
        {"x": numbers(24, 3, 4), "steps": np.array(3, np.int64)},
    ),
    "dynamic_batch": (
        """dynamic_batch (float[batch,10] features) => (float[batch,4] logits) {
            h = Gemm (features, a, b)
            g = Gelu (h)
            logits = MatMul (g, c)
        }""",
        {"a": numbers(1, 10, 8), "b": numbers(2, 8), "c": numbers(3, 8, 4)},
        {"features": numbers(25, 5, 10)},
    ),
    "attention": (
        """attention (float[2,5,8] x) => (float[2,5,8] y) {
            n = LayerNormalization (x, s, t)
            k = MatMul (n, wk)
            kt = Transpose <perm: ints = [0, 2, 1]> (k)
            q = MatMul (n, wq)
            qk = MatMul (q, kt)
            p = Softmax <axis: int = -1> (qk)
            v = MatMul (n, wv)
            m = MatMul (p, v)
            y = Add (m, x)
        }""",
        {"s": numbers(1, 8), "t": numbers(2, 8), "wk": numbers(3, 8, 8), "wq": numbers(4, 8, 8), "wv": numbers(5, 8, 8)},
        {"x": numbers(26, 2, 5, 8)},
    ),
    "image_to_image": (
        """image_to_image (uint8[1,3,6,8] image) => (float[1,1,13,18] y) {
            f = Cast <to: int = 1> (image)
            u = ConvTranspose <strides: ints = [2, 2]> (f, w)
            y = Resize <mode: string = "linear"> (u, , , sizes)
        }""",
        {"w": numbers(1, 3, 1, 2, 2, scale=0.01), "sizes": np.array([1, 1, 13, 18], np.int64)},
        {"image": np.random.default_rng(27).integers(0, 256, (1, 3, 6, 8)).astype(np.uint8)},
    ),
    "quantized": (
        """quantized (float[2,3,8,8] image) => (float[2,4,6,6] maps) {
            q = QuantizeLinear (image, sx, zx)
            d = DequantizeLinear (q, sx, zx)
            k = DequantizeLinear <axis: int = 0> (w, sw)
            c = Conv (d, k)
            r = Relu (c)
            o = QuantizeLinear (r, sx, zx)
            maps = DequantizeLinear (o, sx, zx)
        }""",
        {
            "sx": np.array(0.05, np.float32),
            "zx": np.array(128, np.uint8),
            "w": np.random.default_rng(1).integers(-127, 128, (4, 3, 3, 3)).astype(np.int8),
            "sw": np.array([0.01, 0.02, 0.005, 0.015], np.float32),
        },
        {"image": numbers(28, 2, 3, 8, 8)},
    ),
    "indexing": (
        """indexing (float[6,5] x, int64[3,1] places) => (sums, scattered, values, order) {
            sums = CumSum <exclusive: int = 1> (x, one)
            scattered = ScatterND <reduction: string = "add"> (x, places, ones)
            values, order = TopK (x, three)
        }""",
        {"one": np.array(1, np.int64), "ones": np.ones((3, 5), np.float32), "three": np.array([3], np.int64)},
        {"x": numbers(29, 6, 5), "places": np.array([[4], [0], [4]], np.int64)},
    ),
    "half": (
        """half (float16[3,8] x) => (float16[3,4] y, float[3,4] z) {
            y = MatMul (x, w)
            z = Cast <to: int = 1> (y)
        }""",
        {"w": numbers(1, 8, 4).astype(np.float16)},
        {"x": numbers(30, 3, 8).astype(np.float16)},
    ),
}


def models(folder: Path) -> list[tuple[str, Path, str, Arrays, Arrays]]:
    made = []
    for name, (text, weights, inputs) in NETWORKS.items():
        model = _model(text, weights, author="the tests", labels="a b c")
        for output in model.graph.output:
            if not output.type.tensor_type.elem_type:
                inferred = onnx.shape_inference.infer_shapes(model)
                types = {value.name: value.type for value in (*inferred.graph.output, *inferred.graph.value_info)}
                output.type.CopyFrom(types[output.name])
        onnx.checker.check_model(model)
        (folder / name).mkdir()
        external = name == "attention"  # its weights are in a separate file
        onnx.save_model(
            model, folder / name / "model.onnx", save_as_external_data=external, location="weights", size_threshold=0
        )
        session = onnxruntime.InferenceSession(folder / name / "model.onnx")
        names = [output.name for output in session.get_outputs()]
        made.append((name, folder / name, "model.onnx", inputs, dict(zip(names, session.run(None, inputs), strict=True))))
    return made


MAKERS = {"onnx": models}
