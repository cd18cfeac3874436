"""Create the models in files/ with their frameworks, and record the frameworks' results in files/answers.npz.

With tensorflow-cpu, paddlepaddle and torch: ``python -m tests.converters.frontends.record [tensorflow] [paddle] [torch]``
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

import numpy as np

FILES = Path(__file__).with_name("files")
ANSWERS = FILES / "answers.npz"


def image() -> np.ndarray:
    """Return the input of all models: ``[2, 3, 8, 8]``; channels are last for TensorFlow."""
    return np.random.default_rng(1).standard_normal((2, 3, 8, 8)).astype(np.float32)


def _weights() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    return (rng.standard_normal((4, 3, 3, 3)) * 0.3).astype(np.float32), rng.standard_normal((4, 5)).astype(np.float32)


def tensorflow() -> np.ndarray:
    import tensorflow as tf
    from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

    filters, dense = _weights()

    class Module(tf.Module):
        def __init__(self) -> None:
            self.filters, self.dense = tf.Variable(filters.transpose(2, 3, 1, 0)), tf.Variable(dense)

        @tf.function(input_signature=[tf.TensorSpec([2, 8, 8, 3], tf.float32, name="image")])
        def serve(self, image):
            maps = tf.nn.relu(tf.nn.conv2d(image, self.filters, strides=2, padding="SAME"))
            return {"scores": tf.nn.softmax(tf.reduce_mean(maps, [1, 2]) @ self.dense)}

    module = Module()
    folder = FILES / "saved_model"
    shutil.rmtree(folder, ignore_errors=True)
    tf.saved_model.save(module, str(folder), signatures={"serving_default": module.serve})
    (FILES / "model.tflite").write_bytes(tf.lite.TFLiteConverter.from_saved_model(str(folder)).convert())
    frozen = convert_variables_to_constants_v2(module.serve.get_concrete_function())
    tf.io.write_graph(frozen.graph, str(FILES), "frozen.pb", as_text=False)
    return module.serve(tf.constant(image().transpose(0, 2, 3, 1)))["scores"].numpy()


def paddle() -> np.ndarray:
    import os

    # A .pdmodel: OpenVINO 2026.4 does not read the newer .json.
    os.environ["FLAGS_enable_pir_api"] = "0"  # noqa: SIM112
    import paddle as pd

    filters, dense = (pd.to_tensor(array) for array in _weights())

    class Module(pd.nn.Layer):
        def __init__(self) -> None:
            super().__init__()
            self.filters = self.create_parameter(filters.shape, default_initializer=pd.nn.initializer.Assign(filters))
            self.dense = self.create_parameter(dense.shape, default_initializer=pd.nn.initializer.Assign(dense))

        def forward(self, image):
            maps = pd.nn.functional.relu(pd.nn.functional.conv2d(image, self.filters, stride=2, padding=1))
            return pd.nn.functional.softmax(pd.nn.functional.linear(maps.mean([2, 3]), self.dense))

    module = Module()
    module.eval()
    with tempfile.TemporaryDirectory() as folder:
        pd.jit.save(module, f"{folder}/model", input_spec=[pd.static.InputSpec([2, 3, 8, 8], "float32", name="image")])
        for name in ("model.pdmodel", "model.pdiparams"):
            shutil.copy(Path(folder) / name, FILES / name)
    return module(pd.to_tensor(image())).numpy()


def torch() -> np.ndarray:
    import torch as t

    filters, dense = map(t.from_numpy, _weights())

    class Module(t.nn.Module):
        def forward(self, image):
            maps = t.relu(t.nn.functional.conv2d(image, filters, stride=2, padding=1))
            return t.softmax(maps.mean([2, 3]) @ dense, 1)

    t.export.save(t.export.export(Module(), (t.from_numpy(image()),)), FILES / "model.pt2")
    return Module()(t.from_numpy(image())).numpy()


def main() -> None:
    FILES.mkdir(exist_ok=True)
    answers = dict(np.load(ANSWERS)) if ANSWERS.exists() else {}
    makers = {"tensorflow": tensorflow, "paddle": paddle, "torch": torch}
    for name in sys.argv[1:] or makers:
        answers[name] = makers[name]()
    np.savez(ANSWERS, **answers)


if __name__ == "__main__":
    main()
