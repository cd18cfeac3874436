"""Converted networks in onnxruntime-web under Node."""

from __future__ import annotations

import base64
import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from tests.converters.model_api.compared import Tensors
from tests.hosts.javascript import EXAMPLES, INSTALL, node

_SCRIPT = Path(__file__).with_name("in_node.mjs")


def missing() -> str:
    """Return why onnxruntime-web is not available, and the remedy; empty if it is available."""
    import shutil

    if shutil.which("node") is None:
        return "Node is not installed"
    return "" if (EXAMPLES / "node_modules" / "onnxruntime-web").is_dir() else f"onnxruntime-web is not installed: {INSTALL}"


def in_node(model: onnx.ModelProto, inputs: Sequence[Tensors]) -> list[dict[str, Any]]:
    """Return the outputs for each of several inputs."""
    feeds = [{name: _encoded(value) for name, value in one.items()} for one in inputs]
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder, name) for name in ("model.onnx", "feeds.json", "results.json")]
        paths[0].write_bytes(model.SerializeToString())
        paths[1].write_text(json.dumps(feeds))
        node(_SCRIPT, *paths, EXAMPLES)
        found = json.loads(paths[2].read_text())
    return [{name: _decoded(**value) for name, value in one.items()} for one in found]


def _encoded(value: np.ndarray) -> dict[str, Any]:
    data = base64.b64encode(np.ascontiguousarray(value).tobytes()).decode()
    return {"type": str(value.dtype), "dims": list(value.shape), "data": data}


def _decoded(type: str, dims: Sequence[int], data: Any) -> np.ndarray:
    if type == "string":
        return np.array(data, object).reshape(dims)
    return np.frombuffer(base64.b64decode(data), np.dtype(type)).reshape(dims)
