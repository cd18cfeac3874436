"""Run converted models in the ONNX Runtime of the current environment. The script only needs NumPy.

``python runner.py MANIFEST`` reads a JSON list of ``{"key", "model", "data", "rtol", "atol", "values"}`` and prints a line
of JSON for each: ``{"key", "fault"}``, with an empty fault for a model that loads and agrees. A line with only the key
precedes it, to identify the model at which the process crashes.
"""

import json
import sys

import numpy as np
import onnxruntime as ort


def fault(subject):
    """Return the fault of a model, ``""`` if there is none."""
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    try:
        session = ort.InferenceSession(subject["model"], options, providers=["CPUExecutionProvider"])
    except Exception as error:
        return "does not load: " + " ".join(str(error).split())
    if not subject["data"]:
        return ""
    data = np.load(subject["data"], allow_pickle=True)
    run = 0
    while f"run{run}" in data:
        inputs, expected = data[f"run{run}"], data[f"expected{run}"]
        feeds = {x.name: array for x, array in zip(session.get_inputs(), inputs, strict=True)}
        try:
            results = session.run(None, feeds)
        except Exception as error:
            return "does not run: " + " ".join(str(error).split())
        for got, wanted in zip(results, expected, strict=True):
            if why := difference(np.asarray(got), wanted, subject):
                return "differs: " + why
        run += 1
    return ""


def difference(got, wanted, subject):
    """Return how two arrays differ, ``""`` if they agree."""
    if got.shape != wanted.shape:
        return f"shapes {got.shape} and {wanted.shape}"
    if not subject["values"]:
        return ""
    if got.dtype.kind in "OUS":
        return "" if got.astype(str).tolist() == wanted.astype(str).tolist() else "strings"
    if got.dtype != wanted.dtype:
        return f"types {got.dtype} and {wanted.dtype}"
    if got.dtype.kind != "f":
        return "" if np.array_equal(got, wanted) else "whole numbers"
    loose = 2e-3 if got.dtype.itemsize == 2 else 0.0
    close = np.allclose(
        got.astype(np.float64),
        wanted.astype(np.float64),
        max(subject["rtol"], loose),
        max(subject["atol"], loose),
        equal_nan=True,
    )
    return "" if close else "numbers"


def main():
    print(json.dumps({"release": ort.__version__}), flush=True)
    with open(sys.argv[1]) as file:
        subjects = json.load(file)
    for subject in subjects:
        print(json.dumps({"key": subject["key"]}), flush=True)
        print(json.dumps({"key": subject["key"], "fault": fault(subject)}), flush=True)


if __name__ == "__main__":
    main()
