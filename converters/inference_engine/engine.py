"""Run an IR of versions 2 to 7 with the Inference Engine 2020.2, which can still read such files.

The Inference Engine is in the PyPI package ``opencv-python-inference-engine`` (4.3.0.2, release 2020.2). It requires Python
3.11 or older and NumPy below 2. This module is therefore also a script, which such a Python runs in a separate process. It
imports NumPy and the standard library only. Its standard input has one JSON object per line::

    {"xml": "model.xml", "bin": "model.bin", "inputs": "in.npz", "outputs": "out.npz", "shapes": {"data": [1, 3, 8, 8]}}

It writes one line for each: ``{}``, or ``{"error": "..."}``. Without ``inputs``, the line describes inputs and outputs.
"""

from __future__ import annotations

import ctypes
import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

_PRECISIONS = {10: "f4", 11: "f2", 30: "i2", 40: "u1", 41: "?", 50: "i1", 60: "u2", 70: "i4", 72: "i8"}


class _Dimensions(ctypes.Structure):
    _fields_ = [("ranks", ctypes.c_size_t), ("dims", ctypes.c_size_t * 8)]


class _Config(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("value", ctypes.c_char_p), ("next", ctypes.c_void_p)]


class _InputShape(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("shape", _Dimensions)]


class _InputShapes(ctypes.Structure):
    _fields_ = [("shapes", ctypes.POINTER(_InputShape)), ("number", ctypes.c_size_t)]


class EngineError(Exception):
    """The Inference Engine rejected a request."""


class Engine:
    """The Inference Engine's C interface."""

    def __init__(self) -> None:
        spec = importlib.util.find_spec("cv2")
        if spec is None or not spec.submodule_search_locations:
            raise EngineError(f"{sys.executable} has no opencv-python-inference-engine")
        folder = Path(next(iter(spec.submodule_search_locations)))
        library = folder / "libinference_engine_c_api.so"
        if not library.exists():
            raise EngineError(f"{folder} has no Inference Engine: install opencv-python-inference-engine")
        self._c = ctypes.CDLL(str(library))
        self._core = ctypes.c_void_p()
        self._call("ie_core_create", str(folder / "plugins.xml").encode(), ctypes.byref(self._core))

    def _call(self, name: str, *arguments: Any) -> None:
        status = getattr(self._c, name)(*arguments)
        if status != 0:
            raise EngineError(f"{name} gives {status}")

    def network(self, xml: str, bin_path: str, shapes: dict[str, list[int]] | None = None) -> Network:
        """Read a file, and reshape inputs if shapes are given."""
        handle = ctypes.c_void_p()
        self._call("ie_core_read_network", self._core, xml.encode(), bin_path.encode(), ctypes.byref(handle))
        network = Network(self, handle)
        if shapes:
            items = (_InputShape * len(shapes))()
            for item, (name, dims) in zip(items, shapes.items(), strict=True):
                item.name = name.encode()
                item.shape = _Dimensions(len(dims), (ctypes.c_size_t * 8)(*dims))
            self._call("ie_network_reshape", handle, _InputShapes(items, len(shapes)))
        return network


class Network:
    """A network in the Inference Engine."""

    def __init__(self, engine: Engine, handle: ctypes.c_void_p) -> None:
        self._engine, self._handle = engine, handle
        self.inputs, self.outputs = self._names("input"), self._names("output")

    def _names(self, kind: str) -> dict[str, list[int]]:
        call = self._engine._call
        count = ctypes.c_size_t()
        call(f"ie_network_get_{kind}s_number", self._handle, ctypes.byref(count))
        names = {}
        for index in range(count.value):
            name = ctypes.c_char_p()
            call(f"ie_network_get_{kind}_name", self._handle, ctypes.c_size_t(index), ctypes.byref(name))
            dims = _Dimensions()
            call(f"ie_network_get_{kind}_dims", self._handle, name, ctypes.byref(dims))
            names[(name.value or b"").decode()] = list(dims.dims[: dims.ranks])
        return names

    def run(self, inputs: dict[str, np.ndarray], runs: int = 1) -> dict[str, np.ndarray]:
        """Return the outputs of the last run by name. Inputs of other types are cast."""
        request = self.request()
        for name in self.inputs:
            blob = self._blob(request, name)
            blob[...] = inputs[name].reshape(blob.shape)
        for _ in range(runs):
            self._engine._call("ie_infer_request_infer", request)
        return {name: self._blob(request, name).copy() for name in self.outputs}

    def request(self) -> ctypes.c_void_p:
        """Create an inference request of the network on the CPU."""
        executable, request, config = ctypes.c_void_p(), ctypes.c_void_p(), _Config()
        call = self._engine._call
        call(
            "ie_core_load_network", self._engine._core, self._handle, b"CPU", ctypes.byref(config), ctypes.byref(executable)
        )
        call("ie_exec_network_create_infer_request", executable, ctypes.byref(request))
        return request

    def _blob(self, request: ctypes.c_void_p, name: str) -> np.ndarray:
        blob, buffer, dims, precision = ctypes.c_void_p(), ctypes.c_void_p(), _Dimensions(), ctypes.c_int()
        call = self._engine._call
        call("ie_infer_request_get_blob", request, name.encode(), ctypes.byref(blob))
        call("ie_blob_get_dims", blob, ctypes.byref(dims))
        call("ie_blob_get_precision", blob, ctypes.byref(precision))
        call("ie_blob_get_buffer", blob, ctypes.byref(buffer))
        dtype = np.dtype(_PRECISIONS[precision.value])
        shape = tuple(dims.dims[: dims.ranks])
        count = int(np.prod(shape, dtype=np.int64))
        data = (ctypes.c_ubyte * (count * dtype.itemsize)).from_address(buffer.value or 0)
        return np.ctypeslib.as_array(data).view(dtype).reshape(shape)


def _answer(engine: Engine, job: dict[str, Any]) -> dict[str, Any]:
    network = engine.network(job["xml"], job["bin"], job.get("shapes"))
    if "inputs" in job:
        with np.load(job["inputs"]) as inputs:
            np.savez(job["outputs"], **network.run(dict(inputs), job.get("runs", 1)))  # type: ignore[arg-type]
        return {}
    return {"inputs": network.inputs, "outputs": network.outputs}


def main() -> None:
    """Process the jobs on standard input, one per line."""
    engine: Engine | None = None
    for line in sys.stdin:
        try:
            engine = engine or Engine()
            answer = _answer(engine, json.loads(line))
        except (EngineError, KeyError, ValueError) as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
