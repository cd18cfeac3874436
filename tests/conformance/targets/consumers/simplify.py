"""Onnxslim and onnxsim: writes the operators of a file before and after one of them, as JSON."""

import collections
import json
import sys

import onnx

path, results, tool = sys.argv[1:4]
model = onnx.load(path)
before = collections.Counter(node.op_type for node in model.graph.node)
if tool == "onnxslim":
    import onnxslim

    after = onnxslim.slim(model)
else:
    import onnxsim

    after = onnxsim.simplify(model)[0]
counts = [before, collections.Counter(node.op_type for node in after.graph.node)]
with open(results, "w") as file:
    json.dump(counts, file)
