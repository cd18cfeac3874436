"""Measurement of OpenVINO's times, in its own process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from converters.openvino.runtime.inference import FLOAT32, as_tensor, read_model
from converters.source import Executed
from converters.validation.times.repeating import median_seconds


def measure(path: str, arrays: Sequence[np.ndarray], extensions: Sequence[str] = ()) -> tuple[float, list[Executed]]:
    """Measure the IR on the CPU in float32: the median seconds of an inference, and the executed operations.

    Args:
        path: the .xml.
        arrays: the inputs in the model's order.
        extensions: see `converters.openvino.runtime.extensions.new_core`.
    """
    core, model = read_model(path, extensions)
    if any(port.partial_shape.rank.is_dynamic for port in model.inputs):
        model.reshape({port: list(a.shape) for port, a in zip(model.inputs, arrays, strict=True)})

    def timed(counting: bool) -> tuple[float, Any]:
        compiled = core.compile_model(model, "CPU", {**FLOAT32, "PERF_COUNT": counting})
        request = compiled.create_infer_request()
        feeds = {i: as_tensor(port, a) for i, (port, a) in enumerate(zip(compiled.inputs, arrays, strict=True))}
        return median_seconds(lambda: request.infer(feeds)), compiled

    seconds, _ = timed(counting=False)  # counting takes time, too
    _, compiled = timed(counting=True)
    executed = []
    for operation in compiled.get_runtime_model().get_ops():
        told = operation.get_rt_info()
        time = str(told["execTimeMcs"].astype(str))
        if time.isdigit():
            names = str(told["originalLayersNames"].astype(str))
            layers = tuple(name for name in names.split(",") if name)
            executed.append(Executed(layers, str(told["layerType"].astype(str)), int(time) / 1e6))
    return seconds, executed
