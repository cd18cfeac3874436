"""onnx2torch: a module of PyTorch."""

import sys

import numpy as np
import onnx
import onnx2torch
import torch

model, given, results = sys.argv[1:4]
module = onnx2torch.convert(onnx.load(model)).eval()
with torch.no_grad():
    outputs = module(*(torch.from_numpy(array) for array in np.load(given).values()))
found = outputs if isinstance(outputs, (list, tuple)) else [outputs]
np.savez(results, **{str(index): value.numpy() for index, value in enumerate(found)})
