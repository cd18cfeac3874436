"""An IR's files as a typed graph. It knows nothing of ONNX."""
