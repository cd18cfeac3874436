"""TVM's Relax frontend, compiled for the CPU."""

import sys

import numpy as np
import onnx
import tvm
from tvm import relax
from tvm.relax.frontend.onnx import from_onnx

model, given, results = sys.argv[1:4]
inputs = dict(np.load(given))
loaded = onnx.load(model)
module = from_onnx(loaded, shape_dict={name: list(a.shape) for name, a in inputs.items()}, keep_params_in_input=False)
with tvm.transform.PassContext(opt_level=0):
    executable = tvm.compile(module, target="llvm")
machine = relax.VirtualMachine(executable, tvm.cpu())
outputs = machine["main"](*(tvm.runtime.tensor(a) for a in inputs.values()))
found = [outputs] if isinstance(outputs, tvm.runtime.Tensor) else list(outputs)
np.savez(results, **{str(index): value.numpy() for index, value in enumerate(found)})
