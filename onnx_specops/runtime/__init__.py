"""Sessions with the native library or Python kernels (onnxruntime-extensions), and ONNX's reference evaluator."""
