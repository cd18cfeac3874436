"""Converters from other formats to ONNX."""
