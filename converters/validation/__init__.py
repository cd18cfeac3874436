"""Comparison of OpenVINO, ONNX Runtime and ONNX's reference evaluator on the same inputs."""
