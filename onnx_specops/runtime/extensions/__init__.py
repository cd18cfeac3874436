"""The NumPy kernels in ONNX Runtime through onnxruntime-extensions.

`kernels` registers and runs them. `adapt` changes models that the kernels do not support directly. `plain` handles errors in
other sessions, which cannot raise them.
"""
