"""The NumPy kernels in ONNX Runtime, through onnxruntime-extensions, and all that its library asks for.

`kernels` registers them and runs them; `adapt` changes models that they cannot take as they are; `plain` says what becomes
of an error where no session of ours is there to raise it.
"""
