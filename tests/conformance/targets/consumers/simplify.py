"""Onnxslim and onnxsim: prints the operators of a file before and after one of them."""

import collections
import json
import sys

import onnx

path, tool = sys.argv[1:3]
model = onnx.load(path)
before = collections.Counter(node.op_type for node in model.graph.node)
if tool == "onnxslim":
    import onnxslim

    after = onnxslim.slim(model)
else:
    import onnxsim

    after = onnxsim.simplify(model)[0]
print(json.dumps([before, collections.Counter(node.op_type for node in after.graph.node)]))
