"""OpenVINO in a separate process: the caller receives every failure."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import ml_dtypes
import numpy as np
import openvino as ov
import pytest
from openvino import opset13

from converters.openvino.runtime.inference import LayerOutput, evaluate, infer
from converters.openvino.runtime.process import OpenVINOError, OpenVINOProcess, run_openvino
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
    """Replace OpenVINO by another module in the process, because the inputs that crash OpenVINO change too often."""
    (folder / "stub" / "openvino").mkdir(parents=True)
    (folder / "stub" / "openvino" / "__init__.py").write_text(code)
    monkeypatch.syspath_prepend(folder / "stub")


def test_outputs_layers_and_time(plain: Path) -> None:
    found = run_openvino(plain, [X - 3], [LayerOutput("positive", "Relu", 0), LayerOutput("none", "Relu", 0)])
    np.testing.assert_array_equal(found.outputs[0][0], np.maximum(X - 3, 0) + 1)
    assert found.layers[0] is not None
    np.testing.assert_array_equal(found.layers[0], np.maximum(X - 3, 0))
    assert found.layers[1] is None
    assert 0 < found.seconds < 60


def test_models_that_openvino_rejects(plain: Path, tmp_path: Path) -> None:
    with pytest.raises(OpenVINOError, match="shape"):
        run_openvino(plain, [X[:1]])
    (tmp_path / "bad.xml").write_text("<net/>")
    with pytest.raises(OpenVINOError, match=r"bad\.xml|IR|version"):
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


def test_a_timeout(plain: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    replace_openvino(tmp_path, "import time; time.sleep(600)", monkeypatch)
    with pytest.raises(OpenVINOError, match=r"did not respond within 0\.5 s"):
        run_openvino(plain, [X], timeout=0.5)
    monkeypatch.setattr("converters.openvino.runtime.process.TIMEOUT", 0.5)
    validation = validate(plain, inputs={"x": X})
    assert not validation.agrees
    assert "did not respond" in validation.results[0].error


def test_openvinos_output_is_ignored(plain: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    replace_openvino(tmp_path, "import os; print('x' * 100000); os.write(1, b'y'); raise ValueError('no luck')", monkeypatch)
    with pytest.raises(OpenVINOError, match="ValueError: no luck"):
        run_openvino(plain, [X])


# -- several requests to one process ---------------------------------------------------------------------------------------


def process_id() -> int:
    return os.getpid()


def crash() -> None:
    os.kill(os.getpid(), signal.SIGSEGV)


def hang() -> None:
    time.sleep(600)


def hang_twice() -> None:
    os.fork()
    hang()


def telemetry() -> bool:
    from openvino.tools.ovc import telemetry_utils

    return hasattr(telemetry_utils, "backend_ga4")


def refuse() -> None:
    raise ValueError("no luck")


class Unreadable:
    """An object that cannot be unpickled."""

    def __reduce__(self):
        return refuse, ()


@pytest.fixture
def process() -> Iterator[OpenVINOProcess]:
    with OpenVINOProcess(60) as process:
        yield process


def test_a_process_is_reused(process: OpenVINOProcess, plain: Path) -> None:
    first = process.ask(process_id)
    assert first != os.getpid()
    for question in (refuse, Unreadable()):
        with pytest.raises(OpenVINOError, match="ValueError: no luck"):
            process.ask(question)
    np.testing.assert_array_equal(process.ask(infer, str(plain), [[X]]).outputs[0][0], X + 1)
    assert process.ask(process_id) == first


def test_a_crashed_process_is_replaced(process: OpenVINOProcess) -> None:
    first = process.ask(process_id)
    with pytest.raises(OpenVINOError, match="ended with SIGSEGV"):
        process.ask(crash)
    assert process.ask(process_id) not in (first, os.getpid())


def test_a_hanging_process_is_replaced(process: OpenVINOProcess) -> None:
    first = process.ask(process_id)
    process.timeout = 1
    with pytest.raises(OpenVINOError, match="did not respond within 1 s"):
        process.ask(hang)
    process.timeout = 60
    assert process.ask(process_id) not in (first, os.getpid())


def test_a_closed_process_has_ended(process: OpenVINOProcess) -> None:
    first = process.ask(process_id)
    process.close()
    with pytest.raises(ProcessLookupError):
        os.kill(first, 0)
    process.close()


# -- requests ---------------------------------------------------------------------------------------------------------------


def test_runs_of_several_shapes(process: OpenVINOProcess, tmp_path: Path) -> None:
    for shape in ([-1, 3], None):
        dims = ov.PartialShape.dynamic() if shape is None else ov.PartialShape(shape)
        x = opset13.parameter(dims, np.float32, name="x")
        path = save(tmp_path, [opset13.multiply(x, opset13.constant(np.float32(3)))], [x])
        runs = [[X], [X[:1]], [X[:0]]]
        for answers in (process.ask(infer, str(path), runs).outputs, process.ask(evaluate, str(path), runs)):
            assert [output.tolist() for (output,) in answers] == [(run[0] * 3).tolist() for run in runs]


def test_variables_keep_their_values(process: OpenVINOProcess, tmp_path: Path) -> None:
    x = opset13.parameter([2, 3], np.float32, name="x")
    read = opset13.read_value(opset13.constant(np.zeros((2, 3), np.float32)), "memory", ov.Type.f32, ov.PartialShape([2, 3]))
    total = opset13.add(read, x)
    ov.save_model(ov.Model(total.outputs(), [opset13.assign(total, "memory")], [x]), tmp_path / "model.xml")
    for state, factor in ((False, 1), (True, 2)):
        answer = process.ask(infer, str(tmp_path / "model.xml"), [[X], [X]], state=state)
        np.testing.assert_array_equal(answer.outputs[1][0], X * factor)


@pytest.mark.parametrize(
    ("kind", "dtype"),
    [
        ("bf16", ml_dtypes.bfloat16),
        ("f8e4m3", ml_dtypes.float8_e4m3fn),
        ("f8e5m2", ml_dtypes.float8_e5m2),
        ("i4", ml_dtypes.int4),
        ("u4", ml_dtypes.uint4),
        ("string", object),
    ],
)
def test_types_that_numpy_lacks(process: OpenVINOProcess, tmp_path: Path, kind: str, dtype: type) -> None:
    array = np.array([[1, 2, 5], [7, 3, 0]]).astype(dtype)
    if kind == "string":
        array = np.array([["a", ""], ["été", "two words"]], object)
    x = opset13.parameter([-1, -1], getattr(ov.Type, kind), name="x")
    path = save(tmp_path, [opset13.result(x)], [x])
    (output,) = process.ask(infer, str(path), [[array]]).outputs[0]
    assert (output.dtype, output.tolist()) == (array.dtype, array.tolist())


@pytest.mark.parametrize("kind", ["f4e2m1", "f8e8m0"])
def test_types_that_are_read_as_float32(process: OpenVINOProcess, tmp_path: Path, kind: str) -> None:
    array = np.array([0.5, 1, 4, 2, 1], np.float32)
    x = opset13.parameter([5], np.float32, name="x")
    path = save(tmp_path, [opset13.convert(x, kind)], [x])
    (output,) = process.ask(infer, str(path), [[array]]).outputs[0]
    assert (output.dtype, output.tolist()) == (array.dtype, array.tolist())


def test_layers_that_openvino_cannot_output_are_omitted(tmp_path: Path) -> None:
    """OpenVINO's Multinomial accepts only one consumer."""
    probabilities = opset13.parameter([2, 3], np.float32, name="p")
    drawn = opset13.multinomial(
        opset13.relu(probabilities, name="relu"), opset13.constant(4), "i64", True, False, 1, 2, name="draw"
    )
    shifted = opset13.add(drawn, opset13.constant(1), name="shifted")
    path = save(tmp_path, [opset13.multiply(shifted, opset13.constant(2), name="end")], [probabilities])
    layers = [LayerOutput("relu", "Relu", 0), LayerOutput("draw", "Multinomial", 0), LayerOutput("shifted", "Add", 0)]
    arrays = [np.ones((2, 3), np.float32)]
    with OpenVINOProcess() as process, pytest.raises(OpenVINOError):
        process.ask(infer, str(path), [arrays], layers=layers)
    found = run_openvino(path, arrays, layers)
    assert [value is not None for value in found.layers] == [True, False, True]
    np.testing.assert_array_equal(found.layers[2] * 2, found.outputs[0][0])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no processes that share pipes")
def test_child_processes_end_with_it(process: OpenVINOProcess) -> None:
    process.ask(process_id)
    process.timeout = 1
    with pytest.raises(OpenVINOError, match="did not respond within 1 s"):
        process.ask(hang_twice)


def test_no_telemetry(process: OpenVINOProcess) -> None:
    assert not process.ask(telemetry)
