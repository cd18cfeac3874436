"""Dimensions in a file that OpenVINO ignores, because it infers them again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort
import openvino as ov
import pytest
from openvino import opset13 as ops

from converters.openvino import convert
from converters.openvino.runtime.inference import FLOAT32

STALE = "that differs from the operation's"


def whole(*numbers: int) -> Any:
    return ops.constant(np.array(numbers, np.int64))


def saved(folder: Path, build: Callable[[Any], Any], dims: Sequence[int], *, fp16: bool = False) -> Path:
    x = ops.parameter(dims, np.float32, name="x")
    ov.save_model(ov.Model([ops.result(build(x))], [x], "model"), folder / "model.xml", compress_to_fp16=fp16)
    return folder / "model.xml"


def made_dynamic(xml: Path, *, also_port: bool) -> None:
    """Make all dimensions but the channels of the input dynamic, and keep the dimensions of other values."""
    text = xml.read_text(encoding="utf-8").replace('shape="1,3,8,10"', 'shape="?,3,?,?"', 1)
    head, dims, rest = text.partition("<output>")
    port, end, others = rest.partition("</output>")
    if also_port:
        for size in (1, 8, 10):
            port = port.replace(f"<dim>{size}</dim>", "<dim>-1</dim>")
    xml.write_text(head + dims + port + end + others, encoding="utf-8")


def check(xml: Path, x: np.ndarray, *, is_stale: bool) -> None:
    _, report = convert(xml, xml.with_suffix(".onnx"))
    expected = ov.Core().compile_model(xml, "CPU", FLOAT32)([x])[0]
    (found,) = ort.InferenceSession(xml.with_suffix(".onnx")).run(None, {"x": x})
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    assert any(STALE in remark.message for remark in report.passed_over) is is_stale


NUMBERS = np.random.default_rng(0).standard_normal((2, 3, 8, 5)).astype(np.float32)
"""As many elements as the previous input, so that its dimensions give no error."""


def rows(x: Any) -> Any:
    return ops.reshape(x, whole(0, -1), True)


def pixels(x: Any) -> Any:
    return ops.reshape(ops.transpose(x, whole(0, 2, 3, 1)), whole(0, -1, 3), True)


def sizes(x: Any) -> Any:
    return ops.gather(ops.shape_of(ops.relu(x), "i64"), whole(0, 2), ops.constant(0))


def convolved(x: Any) -> Any:
    return rows(ops.convolution(x, ops.constant(np.ones((3, 3, 1, 1), np.float32)), [1, 1], [0, 0], [0, 0], [1, 1]))


@pytest.mark.parametrize("also_port", [False, True])
@pytest.mark.parametrize("build", [rows, pixels, sizes, convolved])
def test_inputs_that_were_made_dynamic(tmp_path: Path, build: Callable[[Any], Any], also_port: bool) -> None:
    xml = saved(tmp_path, build, [1, 3, 8, 10])
    made_dynamic(xml, also_port=also_port)
    check(xml, NUMBERS, is_stale=True)


def test_weights_that_a_convert_decompresses(tmp_path: Path) -> None:
    """They are constants, too."""
    xml = saved(tmp_path, convolved, [1, 3, 8, 10], fp16=True)
    assert 'type="Convert"' in xml.read_text(encoding="utf-8")
    made_dynamic(xml, also_port=True)
    check(xml, NUMBERS, is_stale=True)


@pytest.mark.parametrize("dims", [(1, 3, 8, 10), (-1, 3, -1, -1)])
@pytest.mark.parametrize("build", [rows, pixels, sizes, convolved])
def test_files_of_openvino(tmp_path: Path, build: Callable[[Any], Any], dims: Sequence[int]) -> None:
    xml = saved(tmp_path, build, dims)
    x = NUMBERS if -1 in dims else np.ascontiguousarray(NUMBERS[:1].repeat(2, 3))
    check(xml, x, is_stale=False)


def added(x: Any) -> Any:
    return ops.add(ops.transpose(x, whole(0, 2, 3, 1)), ops.constant(np.ones((2, 1, 5, 3), np.float32)))


def reversed_rows(x: Any) -> Any:
    return ops.reverse_sequence(x, ops.constant(np.array([2, 3], np.int32)), 0, 1)


@pytest.mark.parametrize("build", [added, reversed_rows])
def test_dimensions_of_constants(tmp_path: Path, build: Callable[[Any], Any]) -> None:
    """A constant makes dimensions of the result known."""
    check(saved(tmp_path, build, [-1, 3, -1, -1]), NUMBERS, is_stale=False)


def test_dimensions_of_two_inputs(tmp_path: Path) -> None:
    x, y = ops.parameter([-1, 3], np.float32, name="x"), ops.parameter([2, 3], np.float32, name="y")
    ov.save_model(ov.Model([ops.result(ops.concat([x, ops.relu(y)], 1))], [x, y], "model"), tmp_path / "model.xml")
    _, report = convert(tmp_path / "model.xml", tmp_path / "model.onnx")
    assert not report.passed_over


def sum_of_two(x: Any, y: Any) -> Any:
    return ops.add(x, ops.relu(y))


def joined(x: Any, y: Any) -> Any:
    return ops.concat([x, y], 1)


def chosen(x: Any, y: Any) -> Any:
    return ops.select(ops.greater(x, y), x, y)


@pytest.mark.parametrize("build", [sum_of_two, joined, chosen])
@pytest.mark.parametrize("is_fixed", [False, True])
def test_two_inputs_that_were_made_dynamic(tmp_path: Path, build: Callable[[Any, Any], Any], is_fixed: bool) -> None:
    """A number that no input has is of before; a number of another input is a known dimension."""
    x, y = (ops.parameter([1, 3, 8, 10], np.float32, name=name) for name in "xy")
    ov.save_model(ov.Model([ops.result(rows(build(x, y)))], [x, y], "model"), xml := tmp_path / "model.xml")
    text = xml.read_text(encoding="utf-8")
    for name in "x" if is_fixed else "xy":
        before, after = text.split(f'name="{name}"', 1)
        head, port, rest = after.replace('shape="1,3,8,10"', 'shape="?,3,?,?"', 1).partition("</output>")
        for size in (1, 8, 10):
            head = head.replace(f"<dim>{size}</dim>", "<dim>-1</dim>")
        text = f'{before}name="{name}"{head}{port}{rest}'
    xml.write_text(text, encoding="utf-8")
    _, report = convert(xml, xml.with_suffix(".onnx"))
    feeds = [np.ones((1, 3, 8, 10), np.float32)] * 2 if is_fixed else [NUMBERS, -NUMBERS]
    expected = ov.Core().compile_model(xml, "CPU", FLOAT32)(feeds)[0]
    (found,) = ort.InferenceSession(xml.with_suffix(".onnx")).run(None, dict(zip("xy", feeds, strict=True)))
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    assert any(STALE in remark.message for remark in report.passed_over) is not is_fixed
