"""Ncnn: pnnx converts the ONNX file, and ncnn runs the result."""

import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import ncnn
import numpy as np

model, given, results = sys.argv[1:4]
inputs = dict(np.load(given))
short = {"float32": "f32", "int64": "i64", "int32": "i32", "float64": "f64", "float16": "f16", "bool": "bool"}
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "model.onnx")
    shutil.copy(model, path)
    shapes = ",".join("[" + ",".join(map(str, a.shape)) + "]" + short[a.dtype.name] for a in inputs.values())
    tool = shutil.which("pnnx", path=os.path.dirname(sys.executable)) or "pnnx"
    done = subprocess.run([tool, path, f"inputshape={shapes}", "fp16=0"], capture_output=True, text=True, cwd=folder)
    params = glob.glob(os.path.join(folder, "*.ncnn.param"))
    if not params:
        raise RuntimeError((done.stdout + done.stderr)[-600:])
    net = ncnn.Net()
    net.opt.use_fp16_arithmetic = net.opt.use_fp16_storage = net.opt.use_fp16_packed = False
    if net.load_param(params[0]) or net.load_model(params[0][: -len("param")] + "bin"):
        raise RuntimeError("ncnn does not load what pnnx wrote: " + (done.stdout + done.stderr)[-400:])
    extractor = net.create_extractor()
    # pnnx removes the batch axis, unless it does not find it; its own example states which.
    example = next(Path(folder).glob("*_ncnn.py")).read_text()
    batches = dict(re.findall(r"(\bin\d+)\.numpy\(\), batch_index=(\d+)", example))
    batches |= dict(re.findall(r"(\bout\d+)\.numpy\(batch_index=(\d+)\)", example))
    for index, array in enumerate(inputs.values()):
        data = array if array.dtype.kind == "f" else array.astype(np.int32)
        extractor.input(f"in{index}", ncnn.Mat(np.ascontiguousarray(data), batch_index=int(batches[f"in{index}"])).clone())
    blobs = sorted(set(re.findall(r"\bout\d+\b", Path(params[0]).read_text())), key=lambda name: int(name[3:]))
    # A blob of ncnn has 32 bits an element, but no type.
    text = next(Path(folder).glob("*.pnnx.param")).read_text()
    types = [re.findall(r"#\S+=\([^)]*\)(\w+)", line)[-1:] for line in text.splitlines() if line.startswith("pnnx.Output")]
    arrays = []
    for index, name in enumerate(blobs):
        code, value = extractor.extract(name)
        if code:
            raise RuntimeError(f"ncnn computes no {name}")
        array = value.numpy(batch_index=int(batches[name])).copy()
        arrays.append(array.view(np.int32) if index < len(types) and types[index] in (["i64"], ["i32"]) else array)
np.savez(results, **{str(index): array for index, array in enumerate(arrays)})
