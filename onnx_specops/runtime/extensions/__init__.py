"""The NumPy kernels in ONNX Runtime through onnxruntime-extensions.

`kernels` registers and runs them. `adapt` changes models that they do not support as they are. `plain` handles errors in
sessions other than ours, which cannot raise them.
"""
