"""The native library stays loaded: the objects that it gives ONNX Runtime outlive sessions and are created once."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from onnx import TensorProto

from onnx_specops.runtime.library import library_path
from tests.native import needs_library
from tests.onnx_specops.native import nodes

SESSIONS = 200
MOST_GROWTH = 4 * 2**20  # bytes; loading the library for each session leaked 120 kB each time

SCRIPT = """
import gc, sys
import onnxruntime as ort

library, model, sessions = sys.argv[1], bytes.fromhex(sys.stdin.read()), int(sys.argv[2])

def places():
    with open("/proc/self/maps") as maps:
        return [line.split()[0] for line in maps if line.rstrip().endswith(library)]

def resident():
    with open("/proc/self/statm") as sizes:
        return int(sizes.read().split()[1]) * 4096

def make():
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.register_custom_ops_library(library)
    ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])

assert not places()
seen = set()
for i in range(sessions + 50):
    make()
    gc.collect()
    seen.add(tuple(places()))
    if i == 49:  # by then caches and pools have their size
        before = resident()
assert len(seen) == 1 and all(seen), f"the library was unloaded: {len(seen)} places"
print(resident() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@needs_library
def test_sessions_neither_unload_nor_leak_the_library() -> None:
    model = nodes.model("ErfInv", [np.zeros(3, np.float32)], [TensorProto.FLOAT])
    command = [sys.executable, "-c", SCRIPT, library_path(), str(SESSIONS)]
    done = subprocess.run(command, input=model.hex(), capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) < MOST_GROWTH
