"""Sparse matrices whose numbers the Inference Engine rejects, or takes for memory beyond its tensors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from converters.errors import ConversionError
from converters.openvino import convert
from tests.conformance.inference_engine.check import run
from tests.conformance.inference_engine.model import Net, Port

_FILL = {"indices": [[0, 1], [2, 0]], "size": [3, 4]}
_SUM = {"pairs": [[0, 0], [2, 1], [2, 3]], "values": [1, 3, 0], "default": 0}

_SEGMENTS = {"indices": [0, 3, 1], "segments": [0, 0, 2]}


def _fill(net: Net, changed: dict, computed: bool) -> dict[str, np.ndarray]:
    numbers = {name: np.array(value, np.float32) for name, value in (_FILL | changed).items()}
    indices, size = (_port(net, name, value, computed) for name, value in numbers.items())
    values = net.input(2, name="values")
    net.layer("SparseFillEmptyRows", [indices, values, size, net.const([7.0])], [(3, 2), (3,), (3,)], {}, name="out")
    return numbers | {"values": np.ones(2, np.float32)}


def _sum(net: Net, changed: dict, computed: bool) -> dict[str, np.ndarray]:
    numbers = {name: np.array(value, np.int32) for name, value in (_SUM | changed).items()}
    pairs, values, default = (_port(net, name, value, computed) for name, value in numbers.items())
    size, table = net.const(np.array([3, 9], np.int32)), net.input(4, 5, name="table")
    net.layer("ExperimentalSparseWeightedSum", [pairs, values, size, table, default], [(3, 5)], {}, name="out")
    return numbers | {"table": np.ones((4, 5), np.float32)}


def _segments(net: Net, changed: dict, computed: bool) -> dict[str, np.ndarray]:
    numbers = {name: np.array(value, np.float32) for name, value in (_SEGMENTS | changed).items()}
    data = net.input(4, 5, name="data")
    parts = [_port(net, name, value, computed) for name, value in numbers.items()]
    net.layer("SparseSegmentSum", [data, *parts], [(3, 5)], {}, name="out")
    return numbers | {"data": np.ones((4, 5), np.float32)}


def _port(net: Net, name: str, value: np.ndarray, computed: bool) -> Port:
    if not computed or not value.ndim:
        return net.const(value)
    return net.input(*value.shape, name=name, precision="I32" if value.dtype == np.int32 else "FP32")


@pytest.mark.parametrize(
    ("make", "changed", "message"),
    [
        (_fill, {"indices": [[0, 1], [0.5, 0]]}, "its pairs are fractions"),
        (_fill, {"size": [2.5, 4]}, "its dimensions are fractions"),
        (_fill, {"size": [4, 4]}, "its rows exceed the output"),
        (_fill, {"indices": [[0, 1], [0, 2]]}, "its pairs exceed the output"),
        (_sum, {"pairs": [[0, 0], [3, 1], [2, 0]]}, "its rows are outside the output"),
        (_sum, {"pairs": [[0, 0], [2, 1], [-1, -1]]}, "its rows are outside the output"),
        (_sum, {"values": [1, 4, 0]}, "its values are outside the table"),
        (_sum, {"values": [-1, 1, 0]}, "its values are outside the table"),
        (_segments, {"indices": [0, -1, 1]}, "its indices are outside the data"),
        (_segments, {"indices": [0, 4, 1]}, "its indices are outside the data"),
    ],
)
def test_numbers_that_do_not_fit(make, changed: dict, message: str, tmp_path: Path) -> None:
    net = Net(7)
    make(net, changed, False)
    with pytest.raises(ConversionError, match=message):
        convert(net.save(tmp_path)[0])
    net = Net(7)
    feeds = make(net, changed, True)
    convert(net.save(tmp_path)[0], tmp_path / "model.onnx")
    with pytest.raises(Exception, match=message.removeprefix("its ").replace(" ", "_")):
        run(tmp_path / "model.onnx", feeds, "none")


@pytest.mark.parametrize("default", [-1, 4])
def test_a_default_that_is_not_in_the_table(default: int, tmp_path: Path) -> None:
    net = Net(7)
    feeds = _sum(net, {"default": default}, True)
    convert(net.save(tmp_path)[0], tmp_path / "model.onnx")
    with pytest.raises(Exception, match="default_is_outside_the_table"):
        run(tmp_path / "model.onnx", feeds, "none")
    run(tmp_path / "model.onnx", feeds | {"pairs": np.array([[0, 0], [1, 1], [2, 0]], np.int32)}, "none")


@pytest.mark.parametrize("computed", [False, True])
@pytest.mark.parametrize(
    ("make", "changed"),
    [
        (_fill, {}),
        (_fill, {"indices": [[0, 1], [-1, 0.5]]}),  # after the end
        (_sum, {}),
        (_segments, {}),
        (_segments, {"segments": [-1, 0, 2]}),
        (_sum, {"pairs": [[0, 0], [1, 0], [2, 99]]}),
    ],
)
def test_numbers_that_fit(make, changed: dict, computed: bool, tmp_path: Path) -> None:
    net = Net(7)
    feeds = make(net, changed, computed)
    convert(net.save(tmp_path)[0], tmp_path / "model.onnx")
    assert run(tmp_path / "model.onnx", feeds, "none")
