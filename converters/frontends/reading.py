"""What runs in OpenVINO's process: a frontend, and the IR that it makes."""

from __future__ import annotations

from pathlib import Path


def save_as_ir(path: str, xml: str) -> None:
    """Read a model with OpenVINO's frontend and save it as an IR, its weights as they are.

    Args:
        path: a file of TensorFlow, TensorFlow Lite, PaddlePaddle or PyTorch, or the folder of a SavedModel.
        xml: the .xml; the .bin is beside it.
    """
    import contextlib

    import openvino

    with contextlib.suppress(ImportError):  # the operations of tokenizers
        import openvino_tokenizers  # noqa: F401
    if Path(path).suffix.lower() == ".pt2":
        import torch

        model = openvino.convert_model(torch.export.load(path))
    else:
        model = openvino.convert_model(path)
    openvino.serialize(model, xml, str(Path(xml).with_suffix(".bin")))
