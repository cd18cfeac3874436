"""The command as a user runs it, and models for it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import openvino as ov
import pytest
from openvino import opset13 as ops
from typer.testing import CliRunner, Result

from converters.cli.app import app

MODELS = Path(__file__).parents[3] / "models"


def specops(*arguments: object, input: str | None = None) -> Result:
    return CliRunner().invoke(app, [str(argument) for argument in arguments], terminal_width=80, input=input)


def as_json(result: Result) -> dict:
    """Parse the output, which must be a single JSON object."""
    assert result.stdout.count("\n") == 1, result.stdout
    return json.loads(result.stdout, parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))


def save_dense(path: Path) -> Path:
    """Save a dense layer with 32 x 32 weights, in standard ONNX only."""
    x = ops.parameter([-1, 32], np.float32, name="x")
    weights = np.random.default_rng(0).standard_normal((32, 32)).astype(np.float32)
    y = ops.relu(ops.matmul(x, ops.constant(weights), False, True), name="y")
    y.output(0).set_names({"y"})
    ov.save_model(ov.Model([y], [x], "dense"), path, compress_to_fp16=False)
    return path


def copy_of(name: str, folder: Path) -> Path:
    for file in ("model.xml", "model.bin", "inputs.npz", "expected.npz"):
        shutil.copy(MODELS / name / file, folder / file)
    return folder / "model.xml"
