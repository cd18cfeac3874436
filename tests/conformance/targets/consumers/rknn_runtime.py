"""Rockchip's RKNN toolkit: a build without quantization, in its simulator."""

import os
import sys

os.environ["TQDM_DISABLE"] = "1"  # its progress bars would hide the errors
import numpy as np
from rknn.api import RKNN


def check(status: int, step: str) -> None:
    """Raise an error for a step that failed. The toolkit prints the reason."""
    if status:
        raise RuntimeError(f"{step} failed")


model, given, results = sys.argv[1:4]
arrays = [np.ascontiguousarray(array) for array in np.load(given).values()]
rknn = RKNN(verbose=False)
check(rknn.config(target_platform="rk3588"), "config")
check(rknn.load_onnx(model=model), "load_onnx")
check(rknn.build(do_quantization=False), "build")
check(rknn.init_runtime(), "init_runtime")
outputs = rknn.inference(inputs=arrays, data_format=["nchw"] * len(arrays))
if outputs is None:
    raise RuntimeError("inference failed")
np.savez(results, **{str(index): value for index, value in enumerate(outputs)})
