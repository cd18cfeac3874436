"""OpenVINO's own ONNX frontend, with its CPU plugin in float32."""

import sys

import numpy as np
import openvino

model, given, results = sys.argv[1:4]
compiled = openvino.Core().compile_model(openvino.Core().read_model(model), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
outputs = compiled(list(np.load(given).values()))
np.savez(results, **{str(index): array for index, array in enumerate(outputs.values())})
