"""Sessions: the native library, the Python kernels through onnxruntime-extensions, ONNX's reference evaluator."""
