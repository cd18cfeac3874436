"""Models of TensorFlow: the same functions as SavedModels, frozen graphs, meta graphs and TensorFlow Lite files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import tensorflow as tf
from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

from tests.conformance.frontends.model import Arrays

tf1 = tf.compat.v1
Spec = tf.TensorSpec


def numbers(seed: int, *shape: int, scale: float = 1.0) -> np.ndarray:
    return (np.random.default_rng(seed).standard_normal(shape) * scale).astype(np.float32)


class _Network(tf.Module):
    """A function with variables, which are created in the first call."""

    def __init__(self, function: Callable, signature: list[Spec]) -> None:
        super().__init__()
        self.kept: list = []
        self.made: dict[str, tf.Variable] = {}
        self.function = function
        self.call = tf.function(lambda *inputs: function(self, *inputs), input_signature=signature)

    def variable(self, seed: int, *shape: int, scale: float = 0.3) -> tf.Variable:
        name = f"weights{seed}"
        if name not in self.made:
            with tf.init_scope():
                self.made[name] = tf.Variable(numbers(seed, *shape, scale=scale), name=name)
        return self.made[name]


def cnn(net, image):
    x = tf.nn.relu6(tf.nn.conv2d(image, net.variable(1, 3, 3, 3, 8), strides=2, padding="SAME"))
    x = tf.nn.depthwise_conv2d(x, net.variable(2, 3, 3, 8, 1), [1, 1, 1, 1], "SAME")
    x, *_ = tf1.nn.fused_batch_norm(
        x,
        net.variable(3, 8),
        net.variable(4, 8),
        mean=numbers(5, 8),
        variance=np.abs(numbers(6, 8)) + 0.5,
        is_training=False,
    )
    x = tf.nn.max_pool2d(tf.nn.leaky_relu(x), 2, 2, "VALID")
    return {"scores": tf.nn.softmax(tf.reduce_mean(x, [1, 2]) @ net.variable(7, 8, 5))}


def recurrent(net, tokens):
    """An LSTM as a loop over the steps."""
    x = tf.transpose(tokens, [1, 0, 2])
    weights, bias = net.variable(1, 6 + 8, 32), net.variable(2, 32)
    state = (tf.constant(0), tf.zeros([2, 8]), tf.zeros([2, 8]))

    def body(step, hidden, cell):
        i, j, f, o = tf.split(tf.concat([x[step], hidden], 1) @ weights + bias, 4, 1)
        cell = tf.sigmoid(f + 1.0) * cell + tf.sigmoid(i) * tf.tanh(j)
        return step + 1, tf.sigmoid(o) * tf.tanh(cell), cell

    _, hidden, cell = tf.while_loop(lambda step, *_: step < 7, body, state)
    return {"hidden": hidden, "cell": cell}


def detection(net, boxes, scores):
    """The boxes that NonMaxSuppression keeps, with a dynamic number."""
    corners = tf.concat([boxes[:, :2], boxes[:, :2] + tf.abs(boxes[:, 2:])], 1)
    kept, values = tf.image.non_max_suppression_with_scores(corners, scores, 8, iou_threshold=0.4, score_threshold=0.2)
    return {"kept": tf.gather(corners, kept), "values": values, "indices": kept}


def embeddings(net, tokens):
    """The mean of embeddings without those of token 0, and the nearest entry of a table."""
    table = net.variable(1, 20, 6)
    mask = tf.cast(tf.not_equal(tokens, 0), tf.float32)[..., None]
    mean = tf.reduce_sum(tf.gather(table, tokens) * mask, 1) / tf.maximum(tf.reduce_sum(mask, 1), 1.0)
    values, nearest = tf.math.top_k(tf.linalg.l2_normalize(mean, 1) @ tf.transpose(table), k=3)
    return {"embedding": mean, "nearest": nearest, "similarity": values}


def control_flow(net, x, steps):
    """A condition, and a loop with a given number of steps."""
    started = tf.cond(tf.reduce_sum(x) > 0, lambda: x * 2.0, lambda: tf.abs(x) @ net.variable(1, 4, 4))
    _, result = tf.while_loop(
        lambda k, _: k < steps, lambda k, v: (k + 1, tf.tanh(v + tf.cast(k, tf.float32))), (tf.constant(0), started)
    )
    return {"result": result}


def dynamic_batch(net, features):
    """A perceptron with a dynamic batch."""
    hidden = tf.nn.gelu(features @ net.variable(1, 10, 16) + net.variable(2, 16))
    return {"logits": tf.nn.log_softmax(hidden @ net.variable(3, 16, 4))}


def attention(net, x):
    """A block of a transformer: attention with two heads, layer normalization, a perceptron."""
    query, key, value = (tf.einsum("btd,dhk->bhtk", x, net.variable(n, 8, 2, 4)) for n in (1, 2, 3))
    weights = tf.nn.softmax(tf.einsum("bhtk,bhsk->bhts", query, key) / 2.0)
    mixed = tf.einsum("bhts,bhsk,hkd->btd", weights, value, net.variable(4, 2, 4, 8)) + x
    mean, variance = tf.nn.moments(mixed, [-1], keepdims=True)
    normal = (mixed - mean) * tf.math.rsqrt(variance + 1e-5)
    return {"states": normal + tf.nn.gelu(tf.tensordot(normal, net.variable(5, 8, 8), 1), approximate=True)}


def image_to_image(net, image):
    """Bytes as input and output: resizing, a transposed convolution, depth-to-space and back."""
    x = tf.cast(image, tf.float32) / 255.0
    x = tf.nn.conv2d(tf.nn.space_to_depth(x, 2), net.variable(1, 3, 3, 12, 6), 1, "SAME")
    x = tf.nn.conv2d_transpose(tf.nn.leaky_relu(x), net.variable(2, 3, 3, 4, 6), [1, 12, 16, 4], 2, "SAME")
    x = tf1.image.resize_bilinear(x, [9, 20], align_corners=False, half_pixel_centers=True)
    x = tf1.image.resize_nearest_neighbor(x, [18, 40])
    return {"picture": tf.cast(tf.clip_by_value(x * 255.0 + 128.0, 0.0, 255.0), tf.uint8)}


def half(net, x):
    """A product of 16-bit floats, and a sum in float32."""
    narrow = tf.cast(x, tf.float16) @ tf.cast(net.variable(1, 8, 8), tf.float16)
    return {"narrow": narrow, "sum": tf.reduce_sum(tf.cast(narrow, tf.float32), 1)}


def indexing(net, x, places):
    """Scatters, slices, cumulative sums, one-hot and ragged shapes."""
    scattered = tf.tensor_scatter_nd_update(x, places[:, None], tf.ones([3, 5]))
    sliced = scattered[::2, 1:-1, None] * tf.one_hot(places, 4)[:, None, :]
    return {
        "sums": tf.cumsum(x, 1, exclusive=True),
        "sliced": sliced,
        "padded": tf.pad(tf.reverse(scattered, [1]), [[0, 1], [2, 0]], "REFLECT"),
    }


def pooling(net, x):
    """Means, local response normalization, and a dilated convolution of a sequence."""
    y = tf.nn.conv1d(x, net.variable(1, 3, 4, 4), 1, "SAME", dilations=2)
    return {"mean": tf.nn.avg_pool1d(y, 2, 2, "VALID"), "least": tf.reduce_min(tf.nn.softplus(y), [1])}


_IMAGE = Spec([2, 16, 16, 3], tf.float32, "image")
NETWORKS: dict[str, tuple[Callable, list[Spec], Arrays]] = {
    "cnn": (cnn, [_IMAGE], {"image": numbers(20, 2, 16, 16, 3)}),
    "recurrent": (recurrent, [Spec([2, 7, 6], tf.float32, "tokens")], {"tokens": numbers(21, 2, 7, 6)}),
    "detection": (
        detection,
        [Spec([30, 4], tf.float32, "boxes"), Spec([30], tf.float32, "scores")],
        {"boxes": numbers(22, 30, 4), "scores": np.abs(numbers(23, 30))},
    ),
    "embeddings": (
        embeddings,
        [Spec([3, 6], tf.int32, "tokens")],
        {"tokens": np.array([[3, 1, 4, 0, 0, 0], [1, 5, 9, 2, 6, 5], [8, 0, 0, 0, 0, 0]], np.int32)},
    ),
    "control_flow": (
        control_flow,
        [Spec([3, 4], tf.float32, "x"), Spec([], tf.int32, "steps")],
        {"x": numbers(24, 3, 4), "steps": np.array(3, np.int32)},
    ),
    "dynamic_batch": (dynamic_batch, [Spec([None, 10], tf.float32, "features")], {"features": numbers(25, 5, 10)}),
    "attention": (attention, [Spec([2, 5, 8], tf.float32, "x")], {"x": numbers(26, 2, 5, 8)}),
    "image_to_image": (
        image_to_image,
        [Spec([1, 12, 16, 3], tf.uint8, "image")],
        {"image": np.random.default_rng(27).integers(0, 256, (1, 12, 16, 3)).astype(np.uint8)},
    ),
    "pooling": (pooling, [Spec([2, 8, 4], tf.float32, "x")], {"x": numbers(32, 2, 8, 4)}),
    "half": (half, [Spec([3, 8], tf.float32, "x")], {"x": numbers(28, 3, 8)}),
    "indexing": (
        indexing,
        [Spec([6, 5], tf.float32, "x"), Spec([3], tf.int32, "places")],
        {"x": numbers(29, 6, 5), "places": np.array([4, 0, 2], np.int32)},
    ),
}  # fmt: skip


class _Words(tf.Module):
    """Strings: words are mapped to ids by a vocabulary, and their embeddings are averaged."""

    def __init__(self) -> None:
        super().__init__()
        words = tf.constant(["the", "cat", "sat", "on", "mat"])
        numbered = tf.lookup.KeyValueTensorInitializer(words, tf.range(5, dtype=tf.int64))
        self.table = tf.lookup.StaticVocabularyTable(numbered, 3)
        self.rows = tf.Variable(numbers(1, 8, 4))

    @tf.function(input_signature=[Spec([None], tf.string, "words")])
    def call(self, words):
        found = self.table.lookup(words)
        return {"ids": found, "mean": tf.reduce_mean(tf.gather(self.rows, found), 0)}


class _Signatures(tf.Module):
    """Two functions with a shared variable."""

    def __init__(self) -> None:
        super().__init__()
        self.weights = tf.Variable(numbers(1, 6, 3))

    @tf.function(input_signature=[Spec([None, 6], tf.float32, "x")])
    def encode(self, x):
        return {"code": tf.tanh(x @ self.weights)}

    @tf.function(input_signature=[Spec([None, 3], tf.float32, "code")])
    def decode(self, code):
        return {"x": code @ tf.transpose(self.weights)}


def _computed(call: Callable, inputs: Arrays) -> Arrays:
    return {name: value.numpy() for name, value in call(*map(tf.constant, inputs.values())).items()}


Made = tuple[str, Path, str, Arrays, Arrays]


def saved_models(folder: Path) -> list[Made]:
    made: list[Made] = []
    for name, (function, signature, inputs) in NETWORKS.items():
        net = _Network(function, signature)
        tf.saved_model.save(net, str(folder / name), signatures={"serving_default": net.call})
        made.append((name, folder / name, "", inputs, _computed(net.call, inputs)))
    words = _Words()
    tf.saved_model.save(words, str(folder / "strings"), signatures=words.call)
    told = {"words": np.array(["the", "dog", "sat", "on", "a", "mat"], object)}
    computed = _computed(words.call, told)
    made.append(("strings", folder / "strings", "", {"words": told["words"].astype(str)}, computed))
    two = _Signatures()
    functions = {"serving_default": two.encode, "decode": two.decode}
    tf.saved_model.save(two, str(folder / "signatures"), signatures=functions)
    given = {"x": numbers(30, 4, 6)}
    made.append(("signatures", folder / "signatures", "", given, _computed(two.encode, given)))
    layers = tf.keras.Sequential(
        [
            tf.keras.Input([9, 5], name="sequence"),
            tf.keras.layers.GRU(6, return_sequences=True),
            tf.keras.layers.Bidirectional(tf.keras.layers.LSTM(4)),
            tf.keras.layers.Dense(3, activation="swish"),
        ]
    )
    layers.set_weights([numbers(seed, *w.shape, scale=0.4) for seed, w in enumerate(layers.get_weights())])
    sequence = {"sequence": numbers(31, 2, 9, 5)}
    layers.export(str(folder / "keras"), verbose=False)
    made.append(("keras", folder / "keras", "", sequence, {"output_0": layers(sequence["sequence"]).numpy()}))
    return made


def frozen(folder: Path) -> list[Made]:
    made: list[Made] = []
    for name, (function, signature, inputs) in NETWORKS.items():
        net = _Network(function, signature)
        graph = convert_variables_to_constants_v2(net.call.get_concrete_function())
        tf.io.write_graph(graph.graph, str(folder / name), "model.pb", as_text=False)
        order = [value.name for value in graph.outputs]
        structured = net.call.get_concrete_function().structured_outputs
        computed = _computed(net.call, inputs)
        outputs = dict(zip(order, (computed[key] for key in sorted(structured)), strict=True))
        made.append((name, folder / name, "model.pb", inputs, outputs))
    return made


def meta(folder: Path) -> list[Made]:
    """Return graphs of TensorFlow 1, with checkpoints."""
    made: list[Made] = []
    for name, (function, signature, inputs) in NETWORKS.items():
        if name == "control_flow":  # OpenVINO's frontend rejects a condition in such a graph
            continue
        with tf.Graph().as_default() as graph, tf1.Session() as session:
            tf1.disable_resource_variables()
            tf1.disable_control_flow_v2()

            class Net:
                def variable(self, seed, *shape, scale=0.3):
                    return tf1.get_variable(f"weights{seed}", initializer=numbers(seed, *shape, scale=scale))

            held = [tf1.placeholder(spec.dtype, spec.shape, spec.name) for spec in signature]
            with tf1.variable_scope("", reuse=tf1.AUTO_REUSE):
                results = function(Net(), *held)
            results = {key: tf.identity(value, name=f"result_{key}") for key, value in results.items()}
            if not tf1.global_variables():
                tf1.get_variable("unused", initializer=0.0)
            session.run(tf1.global_variables_initializer())
            computed = session.run(results, dict(zip(held, inputs.values(), strict=True)))
            (folder / name).mkdir()
            tf1.train.Saver().save(session, str(folder / name / "model.ckpt"))
            (folder / name / "checkpoint").unlink()
            outputs = {f"result_{key}": np.asarray(value) for key, value in computed.items()}
            del graph
        made.append((name, folder / name, "model.ckpt.meta", inputs, outputs))
    return made


def tflite(folder: Path) -> list[Made]:
    """Return TensorFlow Lite files: floats, and the quantizations of its converter."""
    made: list[Made] = []

    def add(name: str, net, inputs: Arrays, **settings) -> None:
        function = net.call.get_concrete_function()
        converter = tf.lite.TFLiteConverter.from_concrete_functions([function], net)
        for key, value in settings.items():
            setattr(converter, key, value)
        content = converter.convert()
        (folder / name).mkdir()
        (folder / name / "model.tflite").write_bytes(content)
        interpreter = tf.lite.Interpreter(
            model_content=content, experimental_op_resolver_type=tf.lite.experimental.OpResolverType.BUILTIN_REF
        )
        details = [
            (detail, inputs[detail["name"].removeprefix("serving_default_").split(":")[0]])
            for detail in interpreter.get_input_details()
        ]
        for detail, value in details:
            if -1 in detail["shape_signature"]:
                interpreter.resize_tensor_input(detail["index"], value.shape)
        interpreter.allocate_tensors()
        given, computed = {}, {}
        for detail, value in details:
            value = value.astype(detail["dtype"])
            interpreter.set_tensor(detail["index"], value)
            given[detail["name"]] = value
        interpreter.invoke()
        for detail in interpreter.get_output_details():
            computed[detail["name"]] = interpreter.get_tensor(detail["index"]).copy()
        made.append((name, folder / name, "model.tflite", given, computed))

    default = [tf.lite.Optimize.DEFAULT]
    for name in ("cnn", "embeddings", "dynamic_batch", "pooling", "attention", "image_to_image", "indexing"):
        function, signature, inputs = NETWORKS[name]
        add(name, _Network(function, signature), inputs)
    image = NETWORKS["cnn"][2]
    samples = lambda: iter([[numbers(seed, 2, 16, 16, 3)] for seed in range(50, 60)])  # noqa: E731
    whole = {"optimizations": default, "representative_dataset": samples}
    add("int8_weights", _Network(cnn, [_IMAGE]), image, optimizations=default)
    add("int8", _Network(cnn, [_IMAGE]), image, **whole)
    integers = {"inference_input_type": tf.int8, "inference_output_type": tf.int8}
    add("int8_in_and_out", _Network(cnn, [_IMAGE]), {"image": numbers(20, 2, 16, 16, 3) * 40}, **whole, **integers)
    net = _Network(cnn, [_IMAGE])
    net.call.get_concrete_function()
    converter_spec = tf.lite.TargetSpec(supported_types=[tf.float16])
    add("half_weights", net, image, optimizations=default, target_spec=converter_spec)
    function, signature, inputs = NETWORKS["recurrent"]
    return made


MAKERS = {"saved_model": saved_models, "frozen": frozen, "meta": meta, "tflite": tflite}
