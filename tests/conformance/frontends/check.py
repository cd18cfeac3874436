"""Convert a recorded model and compare it with the framework's results."""

from __future__ import annotations

import contextlib
from pathlib import Path

import numpy as np
import onnxruntime as ort

import onnx_specops
from converters.convert import convert
from converters.errors import ConversionError
from onnx_specops.runtime.errors import MissingKernelError
from tests.conformance.frontends.model import Arrays, Recorded

_TOLERANCE = {"int8": 0.03, "int8_in_and_out": 3, "int8_weights": 0.03, "half": 2e-3, "half_weights": 2e-3, "narrow": 2e-2}
"""The tolerances between integers and 16-bit floats of a framework's kernels and float32."""


def plain(name: str) -> str:
    """Return a name without TensorFlow's suffixes."""
    return name.removeprefix("serving_default_").removesuffix(":0")


def check(model: Recorded, folder: Path, kernels: str = "native") -> str:
    """Return ``"agrees"``, or the difference."""
    try:
        path = model.extract(folder)
        target = folder / f"{model.format}-{model.name}.onnx"
        convert(path, target)
    except ConversionError as error:
        return f"not converted: {error}".replace(str(folder) + "/", "")
    options = ort.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 3
    try:
        session = onnx_specops.InferenceSession(str(target), options, kernels=kernels)  # type: ignore[arg-type]
    except MissingKernelError:  # string operators, which standard ONNX cannot represent
        session = onnx_specops.InferenceSession(str(target), options)
    names = [value.name for value in session.get_inputs()]
    if len(names) != len(model.inputs):
        return f"the inputs are {names} instead of {list(model.inputs)}"
    feeds: Arrays = {}
    for place, name in enumerate(names):
        found = [key for key in model.inputs if plain(key) == plain(name)]
        if not found and model.format == "saved_model" and len(names) > 1:
            return f"the input {name} is none of {list(model.inputs)}"
        feeds[name] = model.inputs[found[0]] if found else [*model.inputs.values()][place]
    values = session.run(None, feeds)
    got = dict(zip([value.name for value in session.get_outputs()], values, strict=True))
    if model.format == "meta":  # such a graph has no declared outputs; they are the values without consumers
        got = {name: value for name, value in got.items() if any(plain(key) == plain(name) for key in model.outputs)}
    if len(got) != len(model.outputs):
        return f"the outputs are {list(got)} instead of {list(model.outputs)}"
    for place, (name, want) in enumerate(model.outputs.items()):
        own = [key for key in got if plain(key) == plain(name)]
        have = got[own[0]] if own else values[place]
        if problem := _difference(have, want, _TOLERANCE.get(model.name, 1e-4)):
            return f"{name}: {problem}"
    named = model.format in ("saved_model", "meta", "frozen", "onnx", "tflite")
    missing = [name for name in model.outputs if named and plain(name) not in map(plain, got)]
    return f"the outputs are named {list(got)} instead of {list(model.outputs)}" if missing else "agrees"


def _difference(have: np.ndarray, want: np.ndarray, tolerance: float) -> str:
    if have.shape != want.shape:
        return f"the shape is {have.shape} instead of {want.shape}"
    if have.dtype != want.dtype:
        return f"{have.dtype} instead of {want.dtype}"
    if want.dtype.kind not in "fiub":
        return "" if (have == want).all() else f"{have} instead of {want}"
    a, b = have.astype(np.float64), want.astype(np.float64)
    most = 0.0
    with contextlib.suppress(ValueError):
        most = float(np.abs(a - b).max())
    scale = 1.0 if want.dtype.kind != "f" else max(1.0, float(np.abs(b).max(initial=0)))
    # Bytes of an image are rounded: the last bit of the sum may change one.
    allowed = max(1.0 if want.dtype == np.uint8 else 0.0, tolerance if want.dtype.kind == "f" or tolerance >= 1 else 0.0)
    return "" if most <= allowed * scale else f"differs by {most:.3g}"
