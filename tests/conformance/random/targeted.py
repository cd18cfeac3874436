"""Conversion with the options of a random model, for a target, too."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

from converters.openvino import convert
from converters.report import Report
from converters.targets import TARGETS
from converters.targets.target import CONTROL_FLOW


def converted(path: Path, output: Path, arrays: Sequence[np.ndarray], arguments: Mapping[str, Any]) -> Report:
    """Convert a model with the given arguments of `convert`.

    For a target, nothing that it lacks is rejected, because ONNX Runtime runs the file and the spellings are judged. A
    target with static shapes gets those of the inputs.
    """
    name = arguments.get("target")
    if name is None:
        return convert(path, output, **arguments)[1]
    target = replace(TARGETS[name], operators=None, lacks={}, limits=(), types=None, control_flow=CONTROL_FLOW)
    given = dict(arguments)
    if target.static:
        layers = ET.parse(path).getroot().iterfind("layers/layer[@type='Parameter']")
        given["input_shapes"] = {layer.get("name"): list(a.shape) for layer, a in zip(layers, arrays, strict=True)}
    with patch.dict(TARGETS, {name: target}):  # type: ignore[arg-type]
        return convert(path, output, **given)[1]
