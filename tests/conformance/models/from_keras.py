"""Networks in Keras, imported through OpenVINO's TensorFlow importer."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

Arrays = Mapping[str, np.ndarray]

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")


def imported(make: Callable[[Any], Any]) -> Callable[[Arrays], Any]:
    """Return a function that builds the ``openvino.Model`` of a Keras model from ``make``, which receives the module
    ``keras``.
    """

    def build(arrays: Arrays) -> Any:
        os.environ["KERAS_BACKEND"] = "tensorflow"
        import keras
        import openvino as ov
        import tensorflow as tf

        tf.config.set_visible_devices([], "GPU")
        keras.utils.set_random_seed(0)
        model = make(keras)
        _randomize(model)
        specs = [tf.TensorSpec([None, *tensor.shape[1:]], tensor.dtype) for tensor in model.inputs]
        function = tf.function(lambda *inputs: model(list(inputs) if len(inputs) > 1 else inputs[0], training=False))
        converted = ov.convert_model(function.get_concrete_function(*specs))
        # Values without consumers are results, too.
        returned = [r for r in converted.get_results() if any("Identity" in name for name in r.output(0).get_names())]
        return ov.Model(returned or converted.get_results(), converted.get_parameters())

    return build


def application(name: str, **options: Any) -> Callable[[Arrays], Any]:
    """Return one of ``keras.applications``."""
    return imported(lambda keras: getattr(keras.applications, name)(weights=None, classes=10, **options))


def _randomize(model: Any) -> None:
    generator = np.random.default_rng(0)
    for variable in model.variables:
        value = np.asarray(variable)
        if value.dtype.kind == "f" and value.size > 1 and (value == value.reshape(-1)[0]).all():
            variable.assign(value + 0.1 * np.abs(generator.standard_normal(value.shape)).astype(value.dtype))


def recurrent(keras: Any) -> Any:
    """Recurrent layers over embedded tokens, step by step, because OpenVINO does not import lists of tensors."""
    layers = keras.layers
    tokens = keras.Input((12,), dtype="int64")
    x = layers.Embedding(50, 16)(tokens)
    x = layers.Bidirectional(layers.LSTM(16, return_sequences=True, unroll=True))(x)
    x = layers.GRU(16, return_sequences=True, unroll=True)(x)
    return keras.Model(tokens, layers.Dense(4)(layers.SimpleRNN(8, unroll=True)(x)))


def conv_lstm(keras: Any) -> Any:
    """Convolutional LSTMs over video frames."""
    layers = keras.layers
    frames = keras.Input((4, 16, 16, 3))
    x = layers.ConvLSTM2D(8, 3, padding="same", return_sequences=True, unroll=True)(frames)
    return keras.Model(frames, layers.Conv2D(1, 1)(layers.ConvLSTM2D(4, 3, unroll=True)(x)))


def transformer(keras: Any) -> Any:
    """Attention over embedded tokens."""
    layers = keras.layers
    tokens = keras.Input((12,), dtype="int64")
    x = layers.Embedding(50, 32)(tokens)
    for _ in range(2):
        x = layers.LayerNormalization()(x + layers.MultiHeadAttention(4, 8)(x, x, use_causal_mask=True))
        x = layers.LayerNormalization()(x + layers.Dense(32)(layers.Dense(64, activation="gelu")(x)))
    return keras.Model(tokens, layers.Dense(4)(x))
