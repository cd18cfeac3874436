"""Record Keras's recurrent layers as IR: ``python -m tests.converters.passes.while_loops.record [NAME ...]``.

It needs TensorFlow, Keras and OpenVINO, and writes keras.zip: for each layer the IR that OpenVINO makes of its SavedModel.
With names, only these layers are added to the file.
"""

from __future__ import annotations

import os
import sys
import tempfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

FILE = Path(__file__).with_name("keras.zip")
STEPS, SIZE, HIDDEN = 5, 3, 4
BATCH = 2


def layers() -> dict[str, tuple[Any, Callable[..., Any]]]:
    """Return for each model the shape of an input without the batch, or a list of them, and a function that applies its
    layers.
    """
    from keras import layers as kl

    usual, dynamic = (STEPS, SIZE), (None, SIZE)
    kinds: dict[str, Callable[..., Any]] = {
        "lstm": lambda **options: kl.LSTM(HIDDEN, **options),
        "gru": lambda **options: kl.GRU(HIDDEN, **options),
        "gru_reset_before": lambda **options: kl.GRU(HIDDEN, reset_after=False, **options),
        "rnn": lambda **options: kl.SimpleRNN(HIDDEN, **options),
    }
    found: dict[str, tuple[Any, Callable[..., Any]]] = {}
    for name, layer in kinds.items():
        found[name] = usual, layer()
        found[f"{name}_all"] = usual, layer(return_sequences=True, return_state=True)
        found[f"{name}_backward"] = usual, layer(return_sequences=True, go_backwards=True)
        found[f"{name}_dynamic"] = dynamic, layer(return_sequences=True)
        found[f"{name}_relu"] = usual, layer(activation="relu", use_bias=False, return_sequences=True)
        found[f"{name}_masked"] = usual, lambda x, layer=layer: layer(return_sequences=True)(kl.Masking()(x))
        found[f"{name}_stack"] = usual, lambda x, layer=layer: layer()(layer(return_sequences=True)(x))
    for mode in ("sum", "mul", "ave", "concat"):
        both = kl.Bidirectional(kl.LSTM(HIDDEN, return_sequences=True), merge_mode=mode)
        found[f"bidirectional_{mode}"] = usual, both
    found["bidirectional_last"] = usual, kl.Bidirectional(kl.GRU(HIDDEN))
    found["bidirectional_stack"] = (
        usual,
        lambda x: kl.Bidirectional(kl.GRU(HIDDEN))(kl.Bidirectional(kl.LSTM(HIDDEN, return_sequences=True))(x)),
    )
    found["given_states"] = (
        [usual, (HIDDEN,), (HIDDEN,)],
        lambda x, h, c: kl.LSTM(HIDDEN, return_sequences=True, return_state=True)(x, initial_state=[h, c]),
    )
    found["encoder_decoder"] = (
        [usual, (STEPS + 1, SIZE)],
        lambda x, y: kl.GRU(HIDDEN, return_sequences=True)(y, initial_state=kl.GRU(HIDDEN, return_state=True)(x)[1]),
    )
    found["two_cells"] = usual, kl.RNN([kl.LSTMCell(HIDDEN), kl.GRUCell(HIDDEN)])
    found["conv_lstm"] = (STEPS, 6, 6, 2), kl.ConvLSTM2D(HIDDEN, 3, return_sequences=True)
    return found


def main(names: list[str]) -> None:
    import keras
    import openvino as ov

    generator = np.random.default_rng(0)
    with (
        tempfile.TemporaryDirectory() as folder,
        zipfile.ZipFile(FILE, "a" if names else "w", zipfile.ZIP_DEFLATED) as archive,
    ):
        for name, (shapes, apply) in layers().items():
            if names and name not in names:
                continue
            inputs = [keras.Input(shape) for shape in (shapes if isinstance(shapes, list) else [shapes])]
            model = keras.Model(inputs, apply(*inputs))
            for variable in model.variables:
                if np.asarray(variable).dtype.kind == "f":
                    variable.assign(0.5 * generator.standard_normal(variable.shape))
            model.export(f"{folder}/{name}", verbose=False)
            converted = ov.convert_model(f"{folder}/{name}")
            ov.save_model(converted, f"{folder}/{name}.xml")
            for suffix in ("xml", "bin"):
                archive.write(f"{folder}/{name}.{suffix}", f"{name}.{suffix}")


if __name__ == "__main__":
    main(sys.argv[1:])
