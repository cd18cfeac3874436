"""Tinygrad."""

import os
import sys

os.environ.setdefault("DEV", "CPU")
import numpy as np
from tinygrad import Tensor
from tinygrad.nn.onnx import OnnxRunner

model, given, results = sys.argv[1:4]
runner = OnnxRunner(model)
outputs = runner({name: Tensor(array) for name, array in np.load(given).items()})
np.savez(results, **{str(index): value.numpy() for index, value in enumerate(outputs.values())})
