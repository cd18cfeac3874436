"""IR versions 2 to 7, which OpenVINO 2018 to 2020 wrote and the Inference Engine read.

Such a file has the structure of version 10: layers with ports, edges, and a .bin. `translate` therefore rewrites the XML
tree into the form of version 10. Inputs become Parameters, named blobs become Const layers, unused outputs become Results,
and the ports of TensorIterator bodies become Parameters and Results. The reader of `converters.openvino` then reads the
tree, with all of its checks, into the same typed graph. The walk, passes, reports, inspection and validation use only that
graph.

The layers keep their types and attributes. Their version is "ir2" to "ir7", and `converters.inference_engine.rules` has a
function for each type, as `converters.openvino.rules` has for the operations of the opsets. Most layers are a few ONNX
operators. If an opset has an equal operation, the rule calls the rule of that operation.
"""
