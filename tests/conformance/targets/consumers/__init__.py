"""One script for each consumer of ONNX, run in its environment: `python SCRIPT MODEL.onnx INPUTS.npz OUTPUTS.npz`.

A script depends on its consumer and NumPy only. It writes the outputs in the model's order, as `0`, `1`, ...
"""
