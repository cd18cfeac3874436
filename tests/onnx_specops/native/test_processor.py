"""processor.h finds the instruction sets that the operating system reports."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import pytest

import onnx_specops
from converters.openvino import convert
from onnx_specops.runtime.library import has_library, library_path
from tests.conformance.quantized.record import unpack
from tests.native import needs_library

# The checkout's sources; an installed package only has the library.
NATIVE = Path(__file__).parents[3] / "onnx_specops" / "native"
INFO = Path("/proc/cpuinfo")

PROGRAM = """
#include "processor.h"

#include <cstdio>

int main() {
  const specops::Processor found = specops::ask_processor();
  std::printf("%d %d %d %d %d", found.avx2, found.avx2_vnni, found.avx512, found.avx512_vnni, found.amx);
}
"""
AVX2 = {"avx2", "fma", "bmi1", "bmi2", "f16c", "movbe", "abm"}
AVX512 = AVX2 | {f"avx512{part}" for part in ("f", "bw", "cd", "dq", "vl")}
VNNI = AVX512 | {"avx512_vnni"}


def test_instruction_sets_match_the_system(tmp_path: Path) -> None:
    if not INFO.is_file():
        pytest.skip("no /proc/cpuinfo")
    compiler = shutil.which("c++")
    flags = next((set(line.split()) for line in INFO.read_text().splitlines() if line.startswith("flags")), None)
    if compiler is None or flags is None:
        pytest.skip("no C++ compiler, or no processor of x86")
    (tmp_path / "asks.cc").write_text(PROGRAM)
    subprocess.run([compiler, "-std=c++17", "-I", NATIVE, tmp_path / "asks.cc", "-o", tmp_path / "asks"], check=True)
    said = subprocess.run([tmp_path / "asks"], capture_output=True, text=True, check=True).stdout
    sets = (AVX2, AVX2 | {"avx_vnni"}, AVX512, VNNI, VNNI | {"amx_tile", "amx_int8"})
    assert said.split() == [str(int(flags >= wanted)) for wanted in sets]


@needs_library
def test_instead_of_a_set_that_the_processor_lacks_the_library_uses_the_best_one() -> None:
    program = "from onnx_specops.runtime.library import description as d; print(d()['products'], d()['convolutions'])"
    inherited = {name: value for name, value in os.environ.items() if name != "ONNX_SPECOPS_SIMD"}
    environment = {**inherited, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", program]
    said = {
        name: subprocess.run(command, env={**environment, **more}, capture_output=True, text=True, check=True).stdout
        for name, more in {"best": {}, "newest": {"ONNX_SPECOPS_SIMD": "amx"}}.items()
    }
    assert said["newest"] == said["best"]


LOADS = """
#include <dlfcn.h>
#include <stdio.h>

int main(int, char** arguments) {
  void* library = dlopen(arguments[1], RTLD_NOW);
  if (library == nullptr) return puts(dlerror()), 1;
  puts(reinterpret_cast<const char* (*)()>(dlsym(library, "OnnxSpecopsOperators"))());
}
"""


@pytest.mark.parametrize(("processor", "products"), [("Conroe", "portable"), ("Haswell", "avx2")])
def test_the_library_runs_on_an_old_processor(processor: str, products: str, tmp_path: Path) -> None:
    """The library loads on a processor of 2006, without AVX, and leaves quantized convolutions to ONNX Runtime."""
    emulator, compiler = shutil.which("qemu-x86_64"), shutil.which("c++")
    if emulator is None or compiler is None or not has_library():
        pytest.skip("needs a C++ compiler and qemu-x86_64 (apt-get install qemu-user), and the native library")
    (tmp_path / "loads.cc").write_text(LOADS)
    subprocess.run([compiler, "-std=c++17", tmp_path / "loads.cc", "-o", tmp_path / "loads", "-ldl"], check=True)
    command = [emulator, "-cpu", processor, tmp_path / "loads", library_path()]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    description = json.loads(done.stdout)
    assert description["products"] == products
    left = {operator["name"] for operator in description["operators"] if not operator["registered"]}
    assert left == ({"QuantizedConv"} if products == "portable" else set())
    # A request for the portable kernels, or any others, registers all of them.
    command[1:1] = ["-E", "ONNX_SPECOPS_SIMD=portable"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert all(operator["registered"] for operator in json.loads(done.stdout)["operators"])


RUNS = """
import sys

import numpy as np

import onnx_specops

session = onnx_specops.InferenceSession(sys.argv[1], kernels="native")
assert session.kernels == "native"
np.save(sys.argv[3], session.run(None, {session.get_inputs()[0].name: np.load(sys.argv[2])})[0])
"""


def test_bodies_run_for_kernels_that_are_not_registered(tmp_path: Path) -> None:
    """Without AVX2, a quantized network has the results of its function bodies, though the domain is registered."""
    emulator = shutil.which("qemu-x86_64")
    if emulator is None or not has_library():
        pytest.skip("needs qemu-x86_64 (apt-get install qemu-user) and the native library")
    convert(unpack("mobile", tmp_path), tmp_path / "model.onnx")
    assert any(node.op_type == "QuantizedConv" for node in onnx.load(tmp_path / "model.onnx").graph.node)
    session = onnx_specops.InferenceSession(tmp_path / "model.onnx", kernels="none")
    shape = session.get_inputs()[0].shape
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    command = [emulator, "-cpu", "Nehalem", "-E", f"PYTHONPATH={os.pathsep.join(sys.path)}", sys.executable, "-c", RUNS]
    subprocess.run([*command, tmp_path / "model.onnx", tmp_path / "x.npy", tmp_path / "y.npy"], check=True)
    expected = session.run(None, {session.get_inputs()[0].name: x})[0]
    np.testing.assert_allclose(np.load(tmp_path / "y.npy"), expected, rtol=1e-5, atol=1e-5)
