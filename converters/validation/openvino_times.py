"""How long OpenVINO takes for a model and for each of its layers; asked for in OpenVINO's own process."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from converters.validation.openvino_inference import FLOAT32, prepared
from converters.validation.step_times import StepTime, repeated


def measure(
    path: str, arrays: Sequence[np.ndarray], extensions: Sequence[str] = ()
) -> tuple[float, list[tuple[tuple[str, ...], str, float]]]:
    """Time the IR on the CPU in float32.

    Args:
        path: the .xml.
        arrays: the inputs in the model's order.
        extensions: as of `converters.validation.openvino_extensions.new_core`.

    Returns:
        The median seconds of an inference and, of each operation that was executed: the names of the layers that it stands
        for (none for one that OpenVINO put in), its type, and its mean seconds of an inference.
    """
