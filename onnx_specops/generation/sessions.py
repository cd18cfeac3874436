"""Sessions of the models in a folder."""

from __future__ import annotations

from pathlib import Path

import onnxruntime as ort
from onnxruntime.capi import onnxruntime_pybind11_state as state

from onnx_specops.generation.errors import GenerationError
from onnx_specops.runtime.session import InferenceSession, Kernels

_DAMAGED = (state.Fail, state.InvalidArgument, state.InvalidGraph, state.InvalidProtobuf, state.RuntimeException)


def open_session(path: Path, options: ort.SessionOptions | None, kernels: Kernels) -> InferenceSession:
    """Create the session of a model.

    Args:
        path: the model, which exists.
        options, kernels: see `onnx_specops.InferenceSession`.

    Raises:
        GenerationError: ONNX Runtime cannot load the file.
    """
    try:
        return InferenceSession(path, options, kernels=kernels)
    except _DAMAGED as error:
        cause = str(error).partition(" failed:")[2] or str(error)
        raise GenerationError(f"{path} cannot be loaded: {cause}; create it again with specops convert") from error
