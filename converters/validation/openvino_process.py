"""OpenVINO in a process of its own: on some models it crashes or hangs, which must not end ours."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

TIMEOUT = 600.0
"""Seconds that OpenVINO gets for reading, compiling and two inferences."""

FLOAT32 = {"INFERENCE_PRECISION_HINT": "f32", "DYNAMIC_QUANTIZATION_GROUP_SIZE": "0"}
"""Computing in float32: also where weights are compressed, whose layers' inputs the plugin would round to 8 bits."""

# How often OpenVINO is asked again for fewer layers at a time.
_ATTEMPTS = 60

_PACKAGES = ("openvino", "openvino_tokenizers")


class OpenVINOError(RuntimeError):
    """OpenVINO refused the model, failed, crashed or hung."""


@dataclass(frozen=True)
class LayerOutput:
    """An output of a layer of the IR: the layer's friendly name and type, and which output."""

    name: str
    type: str
    index: int


@dataclass(frozen=True)
class Inference:
    """What OpenVINO computed: outputs in order, layers' values (``None`` where it has no such layer), seconds."""

    outputs: list[np.ndarray]
    layers: list[np.ndarray | None]
    seconds: float


def run_with_layers(path: Path, arrays: Sequence[np.ndarray], layers: Sequence[LayerOutput]) -> Inference:
    """`run_openvino`, leaving out those layers whose values OpenVINO cannot hand out (some fail with a second consumer)."""
    try:
        return run_openvino(path, arrays, layers)
    except OpenVINOError:
        if not layers:
            raise
    plain = run_openvino(path, arrays)
    attempts = _ATTEMPTS
    values: dict[LayerOutput, np.ndarray | None] = {}
    pending = [list(layers)]
    while pending and attempts:
        group = pending.pop()
        if len(group) == 1:
            continue  # its own failure is what splitting led to
        middle = len(group) // 2
        for half in (group[:middle], group[middle:]):
            attempts -= 1
            try:
                values |= zip(half, run_openvino(path, arrays, half).layers, strict=True)
            except OpenVINOError:
                pending.append(half)
    return Inference(plain.outputs, [values.get(layer) for layer in layers], plain.seconds)


def run_openvino(
    path: Path, arrays: Sequence[np.ndarray], layers: Sequence[LayerOutput] = (), timeout: float | None = None
) -> Inference:
    """Infer the IR on OpenVINO's CPU in float32: once for the outputs, and again for the time.

    Args:
        path: the .xml.
        arrays: the inputs in the model's order.
        layers: further values to hand out.
        timeout: seconds until the process is ended; `TIMEOUT` by default.

    Raises:
        OpenVINOError: with OpenVINO's own message, or how its process ended.
        ModuleNotFoundError: when openvino is not installed.
    """
    timeout = TIMEOUT if timeout is None else timeout
    question = pickle.dumps((str(path), list(arrays), list(layers)))
    start = f"import sys; sys.path[:] = {sys.path!r}; from {__name__} import _answer; _answer()"
    process = subprocess.Popen(
        [sys.executable, "-c", start], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    try:
        stdout, _ = process.communicate(question, timeout)
    except subprocess.TimeoutExpired:
        raise OpenVINOError(f"OpenVINO gave no answer in {timeout:g} s") from None
    finally:
        process.kill()
        process.wait()
    try:
        kind, answer = pickle.loads(stdout)
    except (EOFError, pickle.UnpicklingError):
        raise OpenVINOError(f"OpenVINO crashed: its process ended with {_ending(process.returncode)}") from None
    if kind == "missing":
        package = answer.replace("_", "-")
        raise ModuleNotFoundError(f'{package} is not installed: pip install "onnx-specops[openvino]"', name=answer)
    if kind == "error":
        raise OpenVINOError(answer)
    return answer


def _ending(code: int) -> str:
    if code >= 0:
        return f"exit code {code}"
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"


def _answer() -> None:
    """The process: what stdin asks, answered on stdout, which OpenVINO itself may not write to."""
    stdout = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    question = pickle.load(sys.stdin.buffer)
    try:
        answer: tuple[str, Any] = ("result", _infer(*question))
    except ImportError as error:
        name = (error.name or "").partition(".")[0]
        answer = ("missing", name) if name in _PACKAGES else ("error", f"{type(error).__name__}: {error}")
    except Exception as error:
        answer = ("error", f"{type(error).__name__}: {error}")
    pickle.dump(answer, stdout)
    stdout.close()


def _infer(path: str, arrays: list[np.ndarray], layers: list[LayerOutput]) -> Inference:
    import openvino as ov

    if 'version="extension"' in Path(path).read_text(errors="replace"):
        import openvino_tokenizers  # noqa: F401  (gives every Core the string operations)
    model = ov.Core().read_model(path)
    count = len(model.outputs)
    exposed = _expose(model, layers)
    compiled = ov.Core().compile_model(model, "CPU", FLOAT32)
    request = compiled.create_infer_request()
    feeds = {i: _tensor(ov, port, array) for i, (port, array) in enumerate(zip(compiled.inputs, arrays, strict=True))}
    request.infer(feeds)
    # The first run's values: a later one may continue random sequences and states.
    results = [_array(ov, request.get_output_tensor(index)) for index in range(len(compiled.outputs))]
    started = time.perf_counter()
    request.infer(feeds)
    seconds = time.perf_counter() - started
    return Inference(results[:count], [None if at is None else results[at] for at in exposed], seconds)


def _expose(model: Any, layers: list[LayerOutput]) -> list[int | None]:
    """Add the layers' outputs to the model's; returns where each stands."""
    operations = list(model.get_ops())
    names = Counter(op.get_friendly_name() for op in operations)
    by_name = {op.get_friendly_name(): op for op in operations}
    places: list[int | None] = []
    for layer in layers:
        op = by_name.get(layer.name)
        # Reading may replace layers of old files by others, and names need not be unique.
        if op is None or names[layer.name] > 1 or op.get_type_name() != layer.type or layer.index >= op.get_output_size():
            places.append(None)
            continue
        model.add_outputs([op.output(layer.index)])  # adds nothing where it is an output already
        places.append(model.get_result_index(op.output(layer.index)))
    return places


def _tensor(ov: Any, port: Any, array: np.ndarray) -> Any:
    kind = port.get_element_type()
    if kind == ov.Type.string:
        return ov.Tensor(np.asarray(array, dtype=str))
    if kind == ov.Type.bf16:
        tensor = ov.Tensor(kind, ov.Shape(list(array.shape)))
        tensor.data[...] = np.asarray(array).view(tensor.data.dtype)
        return tensor
    return ov.Tensor(np.ascontiguousarray(array).reshape(array.shape))


def _array(ov: Any, tensor: Any) -> np.ndarray:
    if tensor.element_type == ov.Type.string:
        return np.asarray(tensor.str_data, dtype=object)
    array: np.ndarray = np.array(tensor.data)
    if tensor.element_type == ov.Type.bf16:
        import ml_dtypes

        array = array.view(ml_dtypes.bfloat16) if array.dtype.itemsize == 2 else array.astype(ml_dtypes.bfloat16)
    return array
