"""examples/cpp, built against the installed package and compared with OpenVINO.

pytest tests/hosts/test_cpp.py
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import openvino as ov
import openvino_tokenizers  # noqa: F401  (layers of strings)
import pytest

import onnx_specops
from converters.openvino import convert
from onnx_specops.runtime.errors import MissingKernelError

from .onnxruntime_sdk import make_root

ROOT = Path(__file__).parents[2]
CPU = {"INFERENCE_PRECISION_HINT": "f32"}
STRINGS = {"user", "country", "history", "recent", "candidates"}


def call(*command: object) -> str:
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, encoding="utf-8")
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the built programs."""
    folder = tmp_path_factory.mktemp("cpp")
    if shutil.which("cmake") is None or shutil.which("c++") is None:
        pytest.skip("no CMake, or no C++ compiler")
    try:
        onnx_specops.library_path()
        root = make_root(folder / "onnxruntime")
    except (MissingKernelError, LookupError) as error:
        pytest.skip(str(error))
    package = call(sys.executable, "-m", "onnx_specops", "--cmake-dir").strip()
    options = [f"-Donnx_specops_DIR={package}", f"-DONNXRUNTIME_ROOT={root}", "-DCMAKE_BUILD_TYPE=Release"]
    call("cmake", "-S", ROOT / "examples" / "cpp", "-B", folder / "build", *options)
    call("cmake", "--build", folder / "build", "--parallel", "2")
    return folder / "build"


def values(lines: Iterable[str]) -> list[tuple[str, np.ndarray]]:
    """Parse the output of a program."""
    found = []
    for line in lines:
        name, dims, *elements = line.split("\t")
        shape = [int(dim) for dim in dims.split("x")] if dims else []
        if name in STRINGS:
            array = np.array(elements)
        else:
            array = np.array(elements, np.float64)
        found.append((name, array.reshape(shape)))
    return found


def feed(model: ov.CompiledModel, printed: list[tuple[str, np.ndarray]]) -> dict[str, np.ndarray]:
    """Return the inputs that a program printed, in the form of the model."""
    given = dict(printed)
    types = {port.any_name: port.element_type for port in model.inputs}
    return {
        name: given[name] if type_ == ov.Type.string else given[name].astype(type_.to_dtype())
        for name, type_ in types.items()
    }


def test_a_recommender_with_strings(programs: Path, tmp_path: Path) -> None:
    xml = ROOT / "models" / "recommender" / "model.xml"
    convert(xml, tmp_path / "model.onnx")
    printed = values(call(programs / "recommender", tmp_path / "model.onnx").splitlines())
    model = ov.Core().compile_model(xml, "CPU", CPU)
    expected = model(feed(model, printed))
    outputs = {port.any_name: expected[port] for port in model.outputs}
    compared = [(name, array) for name, array in printed if name in outputs]
    assert [name for name, _ in compared] == ["user_ids", "scores", "best_items", "best_probabilities", "slate"]
    for name, array in compared:
        np.testing.assert_allclose(array, outputs[name], rtol=1e-4, atol=1e-5, err_msg=name)


def test_variables_are_passed_by_the_caller(programs: Path, tmp_path: Path) -> None:
    xml = ROOT / "examples" / "stateful" / "model.xml"
    convert(xml, tmp_path / "model.onnx")
    printed = values(call(programs / "stateful", tmp_path / "model.onnx").splitlines())
    request = ov.Core().compile_model(xml, "CPU", CPU).create_infer_request()
    states = {state.name: state for state in request.query_state()}
    steps = [printed[begin : begin + 3] for begin in range(0, len(printed), 3)]
    assert len(steps) == 4
    interests = []
    for (_, event), (_, interest), (name, visit) in steps:
        request.infer({"event": event.astype(np.float32)})
        np.testing.assert_allclose(interest, request.get_tensor("interest").data, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(visit, states[name.removesuffix(".next")].state.data, rtol=1e-5, atol=1e-6)
        interests.append(interest)
    fresh = onnx_specops.InferenceSession(tmp_path / "model.onnx").run(["interest"], {"event": steps[-1][0][1].astype("f4")})
    assert not np.allclose(fresh[0], interests[-1], atol=1e-4), "the stored value counts"


def test_a_missing_library_is_an_error(programs: Path, tmp_path: Path) -> None:
    model = tmp_path / "model.onnx"
    convert(ROOT / "examples" / "stateful" / "model.xml", model)
    done = subprocess.run([programs / "stateful", model, tmp_path / "none.so"], capture_output=True, text=True)
    assert done.returncode == 1 and "none.so" in done.stderr


@pytest.mark.skipif(shutil.which("cmake") is None, reason="no CMake")
def test_the_cmake_package_has_a_version(tmp_path: Path) -> None:
    folder = call(sys.executable, "-m", "onnx_specops", "--cmake-dir").strip()
    major, minor = onnx_specops.__version__.split(".")[:2]
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.18)\nproject(asks LANGUAGES NONE)\n"
        f"find_package(onnx_specops {major}.{minor} REQUIRED)\n"
        'message(STATUS "found ${onnx_specops_VERSION} ${onnx_specops_LIBRARY}")\n'
        'find_package(onnx_specops 99 QUIET)\nif(onnx_specops_FOUND)\nmessage(FATAL_ERROR "99 is not there")\nendif()\n'
    )
    try:
        library = onnx_specops.library_path()
    except MissingKernelError:
        done = subprocess.run(
            ["cmake", f"-Donnx_specops_DIR={folder}", tmp_path], capture_output=True, text=True, cwd=tmp_path
        )
        assert done.returncode != 0 and "without a compiler" in done.stderr
        return
    said = call("cmake", f"-Donnx_specops_DIR={folder}", "-B", tmp_path / "build", tmp_path)
    assert f"found {onnx_specops.__version__} {Path(library).as_posix()}" in said
