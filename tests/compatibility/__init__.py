"""Compatibility of converted models with releases of ONNX Runtime, by opset.

``python -m tests.compatibility CACHE`` creates a virtual environment for each release in the folder CACHE (about 200 MB
each), runs every model of `subjects` at every opset in it, prints the table and writes docs/compatibility.md.
"""
