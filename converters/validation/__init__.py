"""The same inputs through OpenVINO, ONNX Runtime and ONNX's reference evaluator, compared."""
