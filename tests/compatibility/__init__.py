"""Which releases of ONNX Runtime load what is converted at which opset, and give OpenVINO's answers.

``python -m tests.compatibility CACHE`` makes a virtual environment for each release in the folder CACHE (some 200 MB each),
runs every model of `subjects` at every opset in it, prints the table and writes docs/compatibility.md.
"""
