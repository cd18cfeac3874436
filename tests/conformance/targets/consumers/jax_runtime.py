"""jaxonnxruntime: a function of JAX."""

import sys

import numpy as np
import onnx
from jaxonnxruntime import call_onnx

model, given, results = sys.argv[1:4]
inputs = dict(np.load(given))
function, weights = call_onnx.call_onnx_model(onnx.load(model), inputs)
outputs = function(weights, inputs)
np.savez(results, **{str(index): np.asarray(value) for index, value in enumerate(outputs)})
