"""Create the models in files/ with their frameworks.

::

    python -m tests.conformance.frontends.record [saved_model] [frozen] [meta] [tflite] [paddle] [pt2] [onnx]

in an environment with the framework: tensorflow-cpu, paddlepaddle, torch, or onnxruntime. PaddlePaddle must be 2.6, because
    later releases do not write .pdmodel for some of these models.
"""

from __future__ import annotations

import importlib
import sys
import tempfile
from pathlib import Path

from tests.conformance.frontends.model import FORMATS, store

_MODULES = dict.fromkeys(("saved_model", "frozen", "meta", "tflite"), "tensorflow_models")
_MODULES |= {"paddle": "paddle_models", "pt2": "torch_models", "onnx": "onnx_models"}


def main() -> None:
    for kind in sys.argv[1:] or FORMATS:
        module = importlib.import_module(f"tests.conformance.frontends.{_MODULES[kind]}")
        with tempfile.TemporaryDirectory() as folder:
            models = module.MAKERS[kind](Path(folder))
            store(kind, models)
            print(f"{kind}: {len(models)}: {', '.join(model[0] for model in models)}")


if __name__ == "__main__":
    main()
