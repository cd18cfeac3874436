"""OpenVINO in a process of its own: on some models it crashes, which must not end ours."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np


class OpenVINOError(RuntimeError):
    """OpenVINO refused the model, failed or crashed."""


def run_openvino(
    path: Path, arrays: Sequence[np.ndarray], layers: Sequence[tuple[int, str, int]] = (), timeout: float = 600
) -> tuple[list[np.ndarray], list[np.ndarray | None], float]:
    """Infer the IR on OpenVINO's CPU in float32.

    Args:
        path: the .xml.
        arrays: the inputs in the model's order.
        layers: further values to hand out: ``(position, friendly name, output index)`` of layers.
        timeout: seconds until the process is ended.

    Returns:
        The outputs, the layers' values (``None`` where the layer is not there) and the seconds of the inference.

    Raises:
        OpenVINOError: with OpenVINO's own message.
        ModuleNotFoundError: when openvino is not installed.
    """
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_infer, args=(sender, str(path), list(arrays), list(layers)), daemon=True)
    process.start()
    sender.close()
    try:
        if not receiver.poll(timeout):
            raise OpenVINOError(f"no answer in {timeout:.0f} s")
        kind, answer = receiver.recv()
    except EOFError:
        process.join(10)
        raise OpenVINOError(f"OpenVINO ended the process (exit code {process.exitcode})") from None
    finally:
        process.kill()
        process.join()
    if kind == "missing":
        raise ModuleNotFoundError(answer, name="openvino")
    if kind == "error":
        raise OpenVINOError(answer)
    return answer


def _infer(sender: Connection, path: str, arrays: list[np.ndarray], layers: list[tuple[int, str, int]]) -> None:
    try:
        import openvino as ov
    except ImportError as error:
        sender.send(("missing", str(error)))
        return
    try:
        if 'version="extension"' in Path(path).read_text(errors="replace"):
            import openvino_tokenizers  # noqa: F401  (gives every Core the string operations)
        core = ov.Core()
        model = core.read_model(path)
        count = len(model.outputs)
        exposed = _expose(ov, model, layers)
        compiled = core.compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
        request = compiled.create_infer_request()
        feeds = {index: _tensor(ov, port, array) for index, (port, array) in enumerate(zip(compiled.inputs, arrays, strict=True))}
        request.infer(feeds)
        # The first run's values: a later one may continue random sequences and states.
        results = [_array(ov, request.get_output_tensor(index)) for index in range(len(compiled.outputs))]
        started = time.perf_counter()
        request.infer(feeds)
        seconds = time.perf_counter() - started
        values = [None if at is None else results[at] for at in exposed]
        sender.send(("result", (results[:count], values, seconds)))
    except Exception as error:
        sender.send(("error", f"{type(error).__name__}: {error}"))


def _expose(ov: Any, model: Any, layers: list[tuple[int, str, int]]) -> list[int | None]:
    """Add the layers' outputs to the model's; returns where each stands."""
    by_name = {op.get_friendly_name(): op for op in model.get_ops()}
    places: list[int | None] = []
    total = len(model.outputs)
    for _, name, index in layers:
        op = by_name.get(name)
        if op is None or index >= op.get_output_size():
            places.append(None)
            continue
        model.add_outputs([op.output(index)])
        places.append(total)
        total += 1
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
