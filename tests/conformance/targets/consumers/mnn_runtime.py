"""MNN: its converter, then its runtime."""

import os
import subprocess
import sys
import tempfile

import MNN.expr as expr
import MNN.nn as nn
import numpy as np

model, given, results, names = sys.argv[1:5]
model = os.path.abspath(model)
inputs = dict(np.load(given))
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "model.mnn")
    # MNN's own script for this installs a logging service into the first environment that it finds.
    start = "import sys, _tools; _tools.mnnconvert(sys.argv)"
    arguments = ["-f", "ONNX", "--modelFile", model, "--MNNModel", path, "--bizCode", "x"]
    # It also writes another file into the current directory.
    done = subprocess.run([sys.executable, "-c", start, *arguments], capture_output=True, text=True, cwd=folder)
    if not os.path.exists(path):
        raise RuntimeError((done.stdout + done.stderr)[-600:])
    # Winograd's algorithm for convolutions, the default, has errors of 2e-3 of the largest number. The hint disables it.
    manager = nn.create_runtime_manager(({"precision": "high", "numThread": 1},))
    manager.set_hint(3, 0)
    net = nn.load_module_from_file(path, list(inputs), names.split("|"), runtime_manager=manager)
    kinds = {"f": expr.float, "i": expr.int, "b": expr.int, "u": expr.int}
    variables = []
    for array in inputs.values():
        kind = kinds[array.dtype.kind]
        data = array.astype(np.float32 if array.dtype.kind == "f" else np.int32)
        variable = expr.placeholder(list(array.shape), expr.NCHW, kind)
        variable.write(np.ascontiguousarray(data))
        variables.append(variable)
    outputs = net.forward(variables)
    arrays = [np.array(expr.convert(value, expr.NCHW).read()) for value in outputs]
np.savez(results, **{str(index): array for index, array in enumerate(arrays)})
