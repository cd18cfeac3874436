"""Onnxslim and onnxsim: writes the operators of a file before and after one of them, as JSON.

Nodes that compute with constants only are counted separately.
"""

import collections
import json
import sys

import onnx


def of_constants(graph: onnx.GraphProto) -> list[onnx.NodeProto]:
    """Return the nodes that depend on constants only."""
    known, found = {value.name for value in graph.initializer}, []
    for node in graph.node:
        if all(not name or name in known for name in node.input) and not node.op_type.startswith("Random"):
            known |= set(node.output)
            found.append(node)
    return found


path, results, tool = sys.argv[1:4]
model = onnx.load(path)
before = collections.Counter(node.op_type for node in model.graph.node)
constant = collections.Counter(node.op_type for node in of_constants(model.graph))
if tool == "onnxslim":
    import onnxslim

    after = onnxslim.slim(model)
else:
    import onnxsim

    after = onnxsim.simplify(model)[0]
left = collections.Counter(node.op_type for node in after.graph.node)
with open(results, "w") as file:
    json.dump(
        [before - constant, left - collections.Counter(node.op_type for node in of_constants(after.graph)), constant], file
    )
