"""Reading a model with a frontend, in OpenVINO's process."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import openvino


def save_as_ir(path: str, xml: str) -> None:
    """Read a model with OpenVINO's frontend and save it as an IR without changing its weights.

    Args:
        path: a file of TensorFlow, TensorFlow Lite, PaddlePaddle, PyTorch or ONNX, or the folder of a SavedModel.
        xml: the .xml; the .bin is next to it.
    """
    import contextlib

    import openvino

    with contextlib.suppress(ImportError):  # operations of tokenizers
        import openvino_tokenizers  # noqa: F401
    suffix = Path(path).suffix.lower()
    if suffix == ".pt2":
        import torch

        with contextlib.suppress(ImportError):  # operators of detectors
            import torchvision  # noqa: F401
        model = openvino.convert_model(torch.export.load(path))
    else:
        model = openvino.convert_model(path)
    _name_outputs(model)
    openvino.serialize(model, xml, str(Path(xml).with_suffix(".bin")))


def _name_outputs(model: openvino.Model) -> None:
    """Name an output with several names after its Result, which has the name in the framework's graph.

    OpenVINO removes TensorFlow's Identity nodes, and adds their names to those of their inputs.
    """
    sources = [result.input_value(0) for result in model.get_results()]
    for result, source in zip(model.get_results(), sources, strict=True):
        name = result.friendly_name
        if len(source.names) > 1 and name in source.names and sources.count(source) == 1:
            source.get_tensor().set_names({name})
