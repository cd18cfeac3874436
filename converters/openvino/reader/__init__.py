"""Reading an IR's files into a typed graph, independent of ONNX."""
