"""IREE: its ONNX importer, its compiler, its runtime."""

import os
import subprocess
import sys
import tempfile

import numpy as np
from iree import runtime

model, given, results = sys.argv[1:4]
inputs = dict(np.load(given))
tools = os.path.dirname(sys.executable)
with tempfile.TemporaryDirectory() as folder:
    mlir, module = os.path.join(folder, "model.mlir"), os.path.join(folder, "model.vmfb")
    commands = [
        ["iree-import-onnx", model, "--opset-version", "17", "-o", mlir],
        [
            "iree-compile",
            mlir,
            "--iree-hal-target-device=local",
            "--iree-hal-local-target-device-backends=llvm-cpu",
            "-o",
            module,
        ],
    ]
    for command in commands:
        command[0] = os.path.join(tools, command[0])
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(done.stderr[:600])
    config = runtime.Config("local-task")
    context = runtime.SystemContext(config=config)
    context.add_vm_module(runtime.VmModule.mmap(context.instance, module))
    name = next(n for n in context.modules.module.vm_module.function_names if not n.startswith("__") and "$" not in n)
    outputs = context.modules.module[name](*inputs.values())
found = outputs if isinstance(outputs, (list, tuple)) else [outputs]
np.savez(results, **{str(index): value.to_host() for index, value in enumerate(found)})
