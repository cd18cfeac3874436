"""``python -m benchmarks.state_spaces``: a prompt of a Mamba, with its recurrence as one operator and as separate nodes.

Needs transformers and optimum-intel. Times are single-threaded processor times.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnxruntime as ort
import openvino as ov

import onnx_specops
from converters.openvino import convert
from converters.passes import finish, selective_scan

TOKENS, RUNS = 512, 3
FLOATS = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": "1"}


class Nothing(selective_scan.FuseSelectiveScan):
    """A pass that leaves the separate nodes unchanged."""

    def call(self, model):  # type: ignore[no-untyped-def]
        return finish.PassResult(model, modified=False)


def make(folder: Path) -> Path:
    """Create a model of two layers with the dimensions of mamba-130m and random weights."""
    import torch
    import transformers
    from optimum.intel import OVModelForCausalLM

    torch.manual_seed(1)
    config = transformers.MambaConfig(vocab_size=320, hidden_size=768, state_size=16, num_hidden_layers=2, time_step_rank=48)
    model = transformers.MambaForCausalLM(config).eval()
    model.save_pretrained(folder / "torch")
    exported = OVModelForCausalLM.from_pretrained(folder / "torch", export=True, compile=False, load_in_8bit=False)
    exported.save_pretrained(folder / "ir")
    return folder / "ir" / "openvino_model.xml"


def seconds(run: Callable[[], object]) -> float:
    """Return the processor time of the fastest run."""
    run()
    found = []
    for _ in range(RUNS):
        started = time.process_time()
        run()
        found.append(time.process_time() - started)
    return min(found)


def main() -> None:
    ids = np.random.default_rng(0).integers(1, 300, (1, TOKENS))
    feeds = {"input_ids": ids, "attention_mask": np.ones_like(ids), "cache_position": np.arange(4)}
    with tempfile.TemporaryDirectory() as place:
        path = make(Path(place))
        request = ov.Core().compile_model(path, "CPU", FLOATS).create_infer_request()

        def by_openvino() -> np.ndarray:
            request.reset_state()
            return np.array(request.infer(feeds)[0])

        expected = by_openvino()
        print(f"OpenVINO: {seconds(by_openvino) * 1e3:.0f} ms")
        fused = finish.FuseSelectiveScan
        for title, step in (("one operator", fused), ("separate nodes", Nothing)):
            finish.FuseSelectiveScan = step  # type: ignore[misc]
            convert(path, Path(place) / "model.onnx")
            finish.FuseSelectiveScan = fused  # type: ignore[misc]
            options = ort.SessionOptions()
            options.intra_op_num_threads, options.log_severity_level = 1, 3
            session = onnx_specops.InferenceSession(Path(place) / "model.onnx", options)

            def run(session: onnx_specops.InferenceSession = session) -> np.ndarray:
                session.reset_state()
                return session.run(None, feeds)[0]

            error = np.abs(run() - expected).max() / np.abs(expected).max()
            print(f"{title}: {seconds(run) * 1e3:.0f} ms, {error:.1e} from OpenVINO")


if __name__ == "__main__":
    main()
