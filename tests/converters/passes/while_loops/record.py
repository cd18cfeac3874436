"""Record Keras's recurrent layers as IR: ``python -m tests.converters.passes.while_loops.record``.

It needs TensorFlow, Keras and OpenVINO, and writes keras.zip: for each layer the IR that OpenVINO makes of its SavedModel.
"""

from __future__ import annotations

import os
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


def layers() -> dict[str, tuple[tuple[int | None, ...], Callable[[Any], Any]]]:
    """Return for each model the shape of a batch's input, and a function that applies its layers."""
    from keras import layers as kl

    usual, dynamic = (STEPS, SIZE), (None, SIZE)
    kinds: dict[str, Callable[..., Any]] = {
        "lstm": lambda **options: kl.LSTM(HIDDEN, **options),
        "gru": lambda **options: kl.GRU(HIDDEN, **options),
        "gru_reset_before": lambda **options: kl.GRU(HIDDEN, reset_after=False, **options),
        "rnn": lambda **options: kl.SimpleRNN(HIDDEN, **options),
    }
    found: dict[str, tuple[tuple[int | None, ...], Callable[[Any], Any]]] = {}
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
    found["two_cells"] = usual, kl.RNN([kl.LSTMCell(HIDDEN), kl.GRUCell(HIDDEN)])
    found["conv_lstm"] = (STEPS, 6, 6, 2), kl.ConvLSTM2D(HIDDEN, 3, return_sequences=True)
    return found


def main() -> None:
    import keras
    import openvino as ov

    generator = np.random.default_rng(0)
    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(FILE, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, (shape, apply) in layers().items():
            x = keras.Input(shape)
            model = keras.Model(x, apply(x))
            for variable in model.variables:
                if np.asarray(variable).dtype.kind == "f":
                    variable.assign(0.5 * generator.standard_normal(variable.shape))
            model.export(f"{folder}/{name}", verbose=False)
            converted = ov.convert_model(f"{folder}/{name}")
            ov.save_model(converted, f"{folder}/{name}.xml")
            for suffix in ("xml", "bin"):
                archive.write(f"{folder}/{name}.{suffix}", f"{name}.{suffix}")


if __name__ == "__main__":
    main()
