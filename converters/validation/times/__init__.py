"""The times of a model in OpenVINO and ONNX Runtime, layer by layer."""
