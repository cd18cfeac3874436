"""Decoders of encoder-decoder models: one token after 16, 128 and 400, for one text and for four beams that are reordered.

    python -m benchmarks.encoder_decoders make FOLDER   # with torch, transformers, optimum-intel
    python -m benchmarks.encoder_decoders run FOLDER    # a table of milliseconds
    python -m benchmarks.encoder_decoders run FOLDER --only whisper --json

The models have the dimensions of Whisper base (1,500 encoder vectors), T5 small and BART base (128 vectors, smaller
vocabularies), and random weights. Contenders: the decoder converted by ``specops convert``, with and without the plugin;
OpenVINO with float32 inference and cache, and with default settings.

Each runs in a separate process with two threads. They take turns, and figures are medians.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

THREADS = 2
POINTS = 16, 128, 400
OURS, BODY, EXACT, SHIPPED = "ours", "ours, no plugin", "OpenVINO, exact", "OpenVINO"
CONTENDERS = OURS, BODY, EXACT, SHIPPED
SIZES = {"whisper": (1500, 512), "t5": (128, 512), "bart": (128, 768)}
"""The shape of the encoder's output: the number of vectors and their size."""

DECODER = "openvino_decoder_model"
Feeds = dict[str, np.ndarray]
Step = Callable[[Feeds], np.ndarray]


def make(folder: Path) -> None:
    """Create the models."""
    import torch
    import transformers
    from optimum.intel import OVModelForSeq2SeqLM, OVModelForSpeechSeq2Seq

    torch.manual_seed(0)
    common = {"encoder_attention_heads": 8, "decoder_attention_heads": 8, "encoder_ffn_dim": 2048, "decoder_ffn_dim": 2048}
    models = {
        "whisper": transformers.WhisperForConditionalGeneration(
            transformers.WhisperConfig(
                vocab_size=51865, d_model=512, encoder_layers=1, decoder_layers=6, max_source_positions=1500,
                max_target_positions=448, num_mel_bins=80, begin_suppress_tokens=None, suppress_tokens=None, **common,
            )
        ),
        "t5": transformers.T5ForConditionalGeneration(
            transformers.T5Config(
                vocab_size=8000, d_model=512, d_kv=64, d_ff=2048, num_layers=1, num_decoder_layers=6, num_heads=8,
                decoder_start_token_id=0,
            )
        ),
        "bart": transformers.BartForConditionalGeneration(
            transformers.BartConfig(
                vocab_size=8000, d_model=768, encoder_layers=1, decoder_layers=6, encoder_attention_heads=12,
                decoder_attention_heads=12, encoder_ffn_dim=3072, decoder_ffn_dim=3072, max_position_embeddings=1024,
            )
        ),
    }  # fmt: skip
    for name, model in models.items():
        model.eval().save_pretrained(folder / name / "torch")
        exporter = OVModelForSpeechSeq2Seq if name == "whisper" else OVModelForSeq2SeqLM
        exported = exporter.from_pretrained(folder / name / "torch", export=True, compile=False, load_in_8bit=False)
        exported.save_pretrained(folder / name)


def ours(model: Path, kernels: Any) -> tuple[Step, Callable[[], None], set[str]]:
    """Open the converted model."""
    import onnxruntime as ort

    import onnx_specops

    options = ort.SessionOptions()
    options.intra_op_num_threads = THREADS
    options.log_severity_level = 3
    session = onnx_specops.InferenceSession(str(model), options, kernels=kernels)
    return lambda feeds: session.run(None, feeds)[0], session.reset_state, {value.name for value in session.get_inputs()}


def openvino(model: Path, exact: bool) -> tuple[Step, Callable[[], None], set[str]]:
    """Open the model in OpenVINO's CPU plugin."""
    import openvino as ov

    settings: dict[str, Any] = {"INFERENCE_NUM_THREADS": THREADS, "PERFORMANCE_HINT": "LATENCY"}
    if exact:
        settings |= {"INFERENCE_PRECISION_HINT": "f32", "DYNAMIC_QUANTIZATION_GROUP_SIZE": "0", "KV_CACHE_PRECISION": "f32"}
    compiled = ov.Core().compile_model(model, "CPU", settings)
    request = compiled.create_infer_request()
    names = {value.get_any_name() for value in compiled.inputs}
    return lambda feeds: next(iter(request.infer(feeds).values())), request.reset_state, names


def child(contender: str, folder: Path, name: str, rows: int) -> dict[str, Any]:
    """Return a contender's milliseconds at each of the points, and the tokens with the largest logits."""
    stem = folder / name / DECODER
    if contender in (EXACT, SHIPPED):
        step, reset, names = openvino(stem.with_suffix(".xml"), contender == EXACT)
    else:
        step, reset, names = ours(stem.with_suffix(".onnx"), "none" if contender == BODY else "native")
    generator = np.random.default_rng(0)
    length, size = SIZES[name]
    fixed = {
        "encoder_hidden_states": np.repeat(generator.standard_normal((1, length, size)).astype(np.float32), rows, axis=0),
        "encoder_attention_mask": np.ones((rows, length), np.int64),
    }
    seconds: dict[int, list[float]] = {point: [] for point in POINTS}
    chosen: list[int] = []
    for _ in range(2):
        reset()
        chosen.clear()
        for past in range(max(POINTS) + 8):
            beams = [max(row - past % 2, 0) for row in range(rows)]
            varying = {"input_ids": generator.integers(3, 8000, (rows, 1)), "beam_idx": np.array(beams, np.int32)}
            feeds = {key: value for key, value in (fixed | varying).items() if key in names}
            start = time.perf_counter()
            logits = step(feeds)
            took = time.perf_counter() - start
            chosen.append(int(logits[-1, -1].argmax()))
            for point in POINTS:
                if abs(past - point) < 8:
                    seconds[point].append(took)
    return {"milliseconds": [statistics.median(found) * 1e3 for found in seconds.values()], "tokens": chosen}


def measure(folder: Path, name: str, rows: int, rounds: int) -> dict[str, dict[str, Any]]:
    """Return the medians of each contender's figures."""
    runs: dict[str, list[dict[str, Any]]] = {contender: [] for contender in CONTENDERS}
    for _ in range(rounds):
        for contender in CONTENDERS:
            command = [sys.executable, "-m", "benchmarks.encoder_decoders", "child", str(folder), contender, name, str(rows)]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            runs[contender].append(json.loads(done.stdout))
    return {
        contender: {
            "milliseconds": [
                statistics.median(column) for column in zip(*(run["milliseconds"] for run in found), strict=True)
            ],
            "tokens": found[0]["tokens"],
        }
        for contender, found in runs.items()
    }


def run(folder: Path, names: list[str], rounds: int, as_json: bool) -> None:
    """Measure and print a table."""
    from converters.openvino import convert

    everything: dict[str, dict[str, dict[str, Any]]] = {}
    for name in names:
        model = folder / name / f"{DECODER}.onnx"
        if not model.exists():
            convert(model.with_suffix(".xml"), model)
        for rows in (1, 4):
            figures = everything[f"{name}, {rows}"] = measure(folder, name, rows, rounds)
            if as_json:
                continue
            print(f"\n{name}, rows: {rows}\n{'':18}" + "".join(f"{point:>9}" for point in POINTS) + "   tokens as exact")
            for contender, own in figures.items():
                same = sum(a == b for a, b in zip(own["tokens"], figures[EXACT]["tokens"], strict=True))
                times = "".join(f"{found:9.2f}" for found in own["milliseconds"])
                print(f"{contender:18}{times}   {same} of {len(own['tokens'])}")
    if as_json:
        print(json.dumps(everything, indent=1))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("command", choices=["make", "run", "child"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("rest", nargs="*", help=argparse.SUPPRESS)
    parser.add_argument("--only", default="", help="models, separated by commas")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if options.command == "make":
        make(options.folder)
    elif options.command == "child":
        contender, name, rows = options.rest
        print(json.dumps(child(contender, options.folder, name, int(rows))))
    else:
        run(options.folder, options.only.split(",") if options.only else list(SIZES), options.rounds, options.json)


if __name__ == "__main__":
    main()
