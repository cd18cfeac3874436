"""``python -m benchmarks.state_spaces mamba|granite|qwen3_5|lfm2``: a prompt and a token of a hybrid, with its recurrence as
one operator and as separate nodes.

``--weights int8`` compresses the weights with NNCF. Needs transformers and optimum-intel. optimum-intel 2.2 exports Mamba
with transformers up to 5.3, the hybrid of Granite with 5.5 or newer, Qwen3.5 with 5.2 and LFM2 with up to 5.4. Times are
single-threaded processor times.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import onnxruntime as ort
import openvino as ov
from onnx_ir.passes import InPlacePass, PassResult

import onnx_specops
from converters.openvino import convert
from converters.passes import finish

TOKENS, RUNS = 512, 5
FLOATS = {
    "INFERENCE_PRECISION_HINT": "f32",
    "INFERENCE_NUM_THREADS": "1",
    "KV_CACHE_PRECISION": "f32",
    "DYNAMIC_QUANTIZATION_GROUP_SIZE": "0",
}
PASSES = {"mamba": "FuseSelectiveScan", "granite": "FuseStateSpaceScan", "qwen3_5": "FuseGatedDeltaRule", "lfm2": ""}
"""The pass that recognizes the recurrence of each family."""


class Nothing(InPlacePass):
    """A pass that leaves the separate nodes unchanged."""

    def call(self, model):  # type: ignore[no-untyped-def]
        return PassResult(model, modified=False)


def make(folder: Path, family: str, weights: str = "float32") -> Path:
    """Create a model of random weights with the dimensions of mamba-130m, mamba2-130m, a Qwen3.5 of 1,024 channels or
    LFM2-350M.

    It has two layers. Qwen3.5 and LFM2 have a third one, of attention, without which optimum-intel cannot export them.
    """
    import torch
    import transformers
    from optimum.intel import OVModelForCausalLM

    torch.manual_seed(1)
    config: transformers.PretrainedConfig
    if family == "mamba":
        config = transformers.MambaConfig(
            vocab_size=320, hidden_size=768, state_size=16, num_hidden_layers=2, time_step_rank=48
        )
    elif family == "qwen3_5":
        config = transformers.Qwen3_5TextConfig(
            vocab_size=320,
            hidden_size=1024,
            intermediate_size=3584,
            num_hidden_layers=3,
            layer_types=["linear_attention", "linear_attention", "full_attention"],
            num_attention_heads=8,
            num_key_value_heads=2,
            head_dim=256,
            linear_num_key_heads=16,
            linear_num_value_heads=16,
            linear_key_head_dim=128,
            linear_value_head_dim=128,
        )
    elif family == "lfm2":
        config = transformers.Lfm2Config(
            vocab_size=320,
            hidden_size=1024,
            intermediate_size=6656,
            num_hidden_layers=3,
            layer_types=["conv", "conv", "full_attention"],
            num_attention_heads=16,
            num_key_value_heads=8,
        )
    else:
        config = transformers.GraniteMoeHybridConfig(
            vocab_size=320,
            hidden_size=768,
            shared_intermediate_size=1024,
            num_hidden_layers=2,
            layer_types=["mamba", "mamba"],
            num_attention_heads=4,
            num_key_value_heads=2,
            num_local_experts=0,
            mamba_n_heads=24,
            mamba_d_head=64,
            mamba_d_state=128,
            mamba_expand=2,
        )
    model = transformers.AutoModelForCausalLM.from_config(config).eval()
    with torch.no_grad():  # an IR lacks scales of 1, which no trained model has
        for name, parameter in model.named_parameters():
            if "norm" in name:
                parameter += 0.1 * torch.randn_like(parameter)
    model.save_pretrained(folder / "torch")
    exported = OVModelForCausalLM.from_pretrained(folder / "torch", export=True, compile=False, load_in_8bit=False)
    exported.save_pretrained(folder / "ir")
    path = folder / "ir" / "openvino_model.xml"
    if weights == "int8":
        import nncf

        compressed = nncf.compress_weights(ov.Core().read_model(path), mode=nncf.CompressWeightsMode.INT8_ASYM)
        path = folder / "int8.xml"
        ov.save_model(compressed, path)
    return path


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
    parser = argparse.ArgumentParser()
    parser.add_argument("family", choices=PASSES)
    parser.add_argument("path", nargs="?", help="an IR that the benchmark made before")
    parser.add_argument("--weights", choices=("float32", "int8"), default="float32")
    arguments = parser.parse_args()
    name = PASSES[arguments.family]
    prompt = {"input_ids": ids, "attention_mask": np.ones_like(ids)}
    token = {"input_ids": ids[:, :1], "attention_mask": np.ones((1, 1), np.int64)}
    prompt["beam_idx"] = token["beam_idx"] = np.zeros(1, np.int32)
    if arguments.family == "mamba":
        prompt["cache_position"], token["cache_position"] = np.arange(4), np.array([TOKENS])
    else:
        token["attention_mask"] = np.ones((1, TOKENS + 1), np.int64)
    if arguments.family == "qwen3_5":
        prompt["position_ids"], token["position_ids"] = np.arange(TOKENS)[None], np.array([[TOKENS]])
    with tempfile.TemporaryDirectory() as place:
        path = Path(arguments.path or make(Path(place), arguments.family, arguments.weights))
        request = ov.Core().compile_model(path, "CPU", FLOATS).create_infer_request()
        expected = measure("OpenVINO", request.reset_state, lambda feeds: np.array(request.infer(feeds)[0]), prompt, token)
        for title in ("one operator", "separate nodes") if name else ("standard ONNX",):
            with mock.patch.object(finish, name, Nothing) if title == "separate nodes" else nullcontext():
                convert(path, Path(place) / "model.onnx")
            options = ort.SessionOptions()
            options.intra_op_num_threads, options.log_severity_level = 1, 3
            session = onnx_specops.InferenceSession(Path(place) / "model.onnx", options)
            found = measure(title, session.reset_state, partial(_first, session), prompt, token)
            error = max(np.abs(a - b).max() / np.abs(b).max() for a, b in zip(found, expected, strict=True))
            print(f"{title}: {error:.1e} from OpenVINO")


def _first(session: onnx_specops.InferenceSession, feeds: Mapping[str, np.ndarray]) -> np.ndarray:
    return session.run(None, dict(feeds))[0]


def measure(
    title: str, reset: Callable[[], None], run: Callable[[Any], np.ndarray], prompt: Any, token: Any
) -> list[np.ndarray]:
    """Print the times of a prompt and of a token after it. Return their results."""

    def first() -> np.ndarray:
        reset()
        return run(prompt)

    results = [first(), run(token)]
    print(f"{title}: prompt {seconds(first) * 1e3:.0f} ms, token {seconds(lambda: run(token)) * 1e3:.2f} ms")
    return results


if __name__ == "__main__":
    main()
