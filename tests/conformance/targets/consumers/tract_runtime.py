"""Tract."""

import sys

import numpy as np
import tract

model, given, results = sys.argv[1:4]
inputs = dict(np.load(given))
inference = tract.onnx().load(model)
for index, array in enumerate(inputs.values()):
    kind = {"float32": "f32", "float64": "f64", "float16": "f16", "int64": "i64", "int32": "i32", "bool": "bool"}
    fact = ",".join([*(str(size) for size in array.shape), kind[array.dtype.name]])
    inference.set_input_fact(index, fact)
outputs = inference.into_model().into_runnable().run(list(inputs.values()))
np.savez(results, **{str(index): value.to_numpy() for index, value in enumerate(outputs)})
