"""The main job, with only the installed package: convert a recommender, run it with the native kernels, and compare.

python .ci/main_job.py CHECKOUT
"""

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnxruntime as ort

import onnx_specops
from onnx_specops.runtime.library import description, native_operators


def main(checkout: Path) -> None:
    installed = Path(onnx_specops.__file__)
    if checkout in installed.parents:
        raise SystemExit(f"{installed} is the package of the checkout, not an installed one")
    model = checkout / "models" / "recommender"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.onnx"
        specops = [sys.executable, "-m", "converters.cli"]
        subprocess.run([*specops, "convert", str(model / "model.xml"), "-o", str(path)], check=True)
        options = ort.SessionOptions()
        options.register_custom_ops_library(onnx_specops.library_path())
        session = ort.InferenceSession(str(path), options)
        inputs = dict(np.load(model / "inputs.npz"))
        got = dict(zip([o.name for o in session.get_outputs()], session.run(None, inputs), strict=True))
    expected = np.load(model / "expected.npz")
    for name in expected.files:
        np.testing.assert_allclose(got[name], expected[name], rtol=1e-4, atol=1e-5, err_msg=name)
    print(f"onnx_specops {onnx_specops.__version__}: {len(expected.files)} outputs equal OpenVINO's")
    print(f"{len(native_operators())} native kernels; regular expressions: {description()['regular_expressions']}")


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve())
