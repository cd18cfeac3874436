"""OpenVINO in its own process: whatever it does there, the caller is told."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import openvino as ov
import pytest
from openvino import opset13

from converters.validation import openvino_process
from converters.validation.openvino_process import LayerOutput, OpenVINOError, run_openvino, run_with_layers
from converters.validation.validate import validate

X = np.arange(6, dtype=np.float32).reshape(2, 3)


def save(folder: Path, results, parameters) -> Path:
    ov.save_model(ov.Model(results, parameters), folder / "model.xml", compress_to_fp16=False)
    return folder / "model.xml"


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    x = opset13.parameter([2, 3], np.float32, name="x")
    y = opset13.add(opset13.relu(x, name="positive"), opset13.constant(np.float32(1)), name="more")
    return save(tmp_path, [y], [x])


def replace_openvino(folder: Path, code: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the process find another module in OpenVINO's place; which inputs crash OpenVINO itself changes too often."""
    (folder / "stub" / "openvino").mkdir(parents=True)
    (folder / "stub" / "openvino" / "__init__.py").write_text(code)
    monkeypatch.syspath_prepend(folder / "stub")


def test_outputs_layers_and_time(plain: Path) -> None:
    found = run_openvino(plain, [X - 3], [LayerOutput("positive", "Relu", 0), LayerOutput("none", "Relu", 0)])
    np.testing.assert_array_equal(found.outputs[0], np.maximum(X - 3, 0) + 1)
    assert found.layers[0] is not None
    np.testing.assert_array_equal(found.layers[0], np.maximum(X - 3, 0))
    assert found.layers[1] is None
    assert 0 < found.seconds < 60


def test_what_it_refuses(plain: Path, tmp_path: Path) -> None:
    with pytest.raises(OpenVINOError):
        run_openvino(plain, [X[:1]])
    (tmp_path / "bad.xml").write_text("<net/>")
    with pytest.raises(OpenVINOError):
        run_openvino(tmp_path / "bad.xml", [])


@pytest.mark.parametrize(
    ("code", "ending"),
    [
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", "SIGSEGV"),
        ("import os; os.abort()", "SIGABRT"),
        ("import os; os._exit(3)", "exit code 3"),
        ("print('much', flush=True); import os; os._exit(0)", "exit code 0"),
    ],
)
def test_a_crash(plain: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str, ending: str) -> None:
    replace_openvino(tmp_path, code, monkeypatch)
    with pytest.raises(OpenVINOError, match=f"OpenVINO crashed: its process ended with {ending}"):
        run_openvino(plain, [X])
    validation = validate(plain, inputs={"x": X}, per_layer=True)
    assert not validation.agrees
    assert "OpenVINO crashed" in validation.results[0].error
    assert validation.results[0].outputs == {}
    ran = [result.runtime for result in validation.results if not result.skipped and not result.error]
    assert ran == ["none", "reference"]
    assert validation.baseline == "none"


def test_an_endless_run(plain: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    replace_openvino(tmp_path, "import time; time.sleep(600)", monkeypatch)
    with pytest.raises(OpenVINOError, match=r"no answer in 0\.5 s"):
        run_openvino(plain, [X], timeout=0.5)
    monkeypatch.setattr(openvino_process, "TIMEOUT", 0.5)
    validation = validate(plain, inputs={"x": X})
    assert not validation.agrees
    assert "no answer" in validation.results[0].error


def test_what_openvino_prints_does_not_matter(plain: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    replace_openvino(tmp_path, "import os; print('x' * 100000); os.write(1, b'y'); raise ValueError('no luck')", monkeypatch)
    with pytest.raises(OpenVINOError, match="ValueError: no luck"):
        run_openvino(plain, [X])


def test_layers_that_openvino_cannot_hand_out_are_left_out(tmp_path: Path) -> None:
    """Its Multinomial takes one consumer only."""
    probabilities = opset13.parameter([2, 3], np.float32, name="p")
    drawn = opset13.multinomial(
        opset13.relu(probabilities, name="relu"), opset13.constant(4), "i64", True, False, 1, 2, name="draw"
    )
    shifted = opset13.add(drawn, opset13.constant(1), name="shifted")
    path = save(tmp_path, [opset13.multiply(shifted, opset13.constant(2), name="end")], [probabilities])
    layers = [LayerOutput("relu", "Relu", 0), LayerOutput("draw", "Multinomial", 0), LayerOutput("shifted", "Add", 0)]
    with pytest.raises(OpenVINOError):
        run_openvino(path, [np.ones((2, 3), np.float32)], layers)
    found = run_with_layers(path, [np.ones((2, 3), np.float32)], layers)
    assert [value is not None for value in found.layers] == [True, False, True]
    np.testing.assert_array_equal(found.layers[2] * 2, found.outputs[0])
