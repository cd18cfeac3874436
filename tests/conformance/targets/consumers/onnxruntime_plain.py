"""ONNX Runtime on the CPU, without the plugin."""

import sys

import numpy as np
import onnxruntime

model, given, results = sys.argv[1:4]
session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
outputs = session.run(None, dict(np.load(given)))
np.savez(results, **{str(index): array for index, array in enumerate(outputs)})
