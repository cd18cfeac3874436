"""How long a model takes in OpenVINO and in ONNX Runtime, layer by layer."""
