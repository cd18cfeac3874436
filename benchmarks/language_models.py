"""A language model with compressed weights: a prompt of 128 tokens (or another number), then 32 tokens one by one.

    python -m benchmarks.language_models make FOLDER    # with torch, transformers, optimum-intel, nncf, onnxruntime-genai
    python -m benchmarks.language_models run FOLDER     # a table of ratios
    python -m benchmarks.language_models run FOLDER --genai PYTHON   # onnxruntime-genai in a separate environment
    python -m benchmarks.language_models run FOLDER --only int4 --tokens 2000 --json
    python -m benchmarks.language_models context FOLDER # one token after 128 and after 2,000, by the cache's type

The model is a Llama of 134 million random weights, made from its configuration class, exported by optimum-intel and
compressed by NNCF: 16-bit floats, 8-bit integers, 4-bit ones with and without zero points. Contenders:

- ours (``specops convert --genai``), float and int8 activations, and the bodies without the plugin; and as
  ``specops convert`` writes only the IR, with beam_idx;
- OpenVINO with float activations (``DYNAMIC_QUANTIZATION_GROUP_SIZE=0``, float32 inference and cache) and with default
  settings;
- onnxruntime-genai on the 4-bit file that its own builder writes.

Each is a separate process with two threads, and the others are idle meanwhile. They take turns. A time is the smallest
median of three parts of the rounds, because other work on the machine only adds time. Loading is the creation of the
session. Memory is the maximum resident memory minus that before loading.
"""

from __future__ import annotations

import argparse
import functools
import json
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

THREADS = 2
TOKENS_IN, TOKENS_OUT = 128, 32
POSITIONS = 2048
VOCABULARY = 32000
KINDS = ("f16", "int8", "int4", "int4_sym")
OURS, OURS_INT8, BODY, PLAIN = "ours", "ours, int8", "ours, no plugin", "ours, beam_idx"
EXACT, SHIPPED, GENAI = "OpenVINO, exact", "OpenVINO", "genai"
CONTENDERS = (OURS, OURS_INT8, BODY, PLAIN, EXACT, SHIPPED, GENAI)

_REST = 0.5  # seconds until the threads of the previous contender stop spinning

Step = Callable[[np.ndarray, int], np.ndarray]
"""A step: takes tokens ``[1, count]`` and the number of previous tokens; returns the logits of the last one,
``[vocabulary]``.
"""


# -- models ---------------------------------------------------------------------------------------------------------------


def make(folder: Path) -> None:
    """Create the models, and the files of each contender."""
    import openvino as ov
    import torch
    from optimum.intel import OVModelForCausalLM, OVWeightQuantizationConfig
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=VOCABULARY, hidden_size=768, intermediate_size=2048, num_hidden_layers=12, num_attention_heads=12,
        num_key_value_heads=12, max_position_embeddings=POSITIONS, bos_token_id=1, eos_token_id=2,
    )  # fmt: skip
    LlamaForCausalLM(config).eval().save_pretrained(folder / "torch")
    integers = {
        "int8": OVWeightQuantizationConfig(bits=8),
        "int4": OVWeightQuantizationConfig(bits=4, sym=False, group_size=128, ratio=1.0),
        "int4_sym": OVWeightQuantizationConfig(bits=4, sym=True, group_size=128, ratio=1.0),
    }
    exported = OVModelForCausalLM.from_pretrained(folder / "torch", export=True, compile=False, load_in_8bit=False)
    exported.save_pretrained(folder / "f32")
    (folder / "f16").mkdir(exist_ok=True)
    model = ov.Core().read_model(folder / "f32" / "openvino_model.xml")
    ov.save_model(model, folder / "f16" / "openvino_model.xml", compress_to_fp16=True)
    exported.config.save_pretrained(folder / "f16")
    for name, settings in integers.items():
        compressed = OVModelForCausalLM.from_pretrained(
            folder / "torch", export=True, compile=False, quantization_config=settings
        )
        compressed.save_pretrained(folder / name)
    builder = [sys.executable, "-m", "onnxruntime_genai.models.builder", "-p", "int4", "-e", "cpu"]
    subprocess.run([*builder, "-i", folder / "torch", "-o", folder / "genai", "-c", folder / "cache"], check=True)


# -- contenders ---------------------------------------------------------------------------------------------------------


def ours(model: Path, kernels: Any) -> Step:
    """Open the converted model."""
    import onnxruntime as ort

    import onnx_specops

    options = ort.SessionOptions()
    options.intra_op_num_threads = THREADS
    options.log_severity_level = 3
    session = onnx_specops.InferenceSession(str(model), options, kernels=kernels)
    names = {value.name for value in session.get_inputs()}

    def step(tokens: np.ndarray, past: int) -> np.ndarray:
        if past == 0:
            session.reset_state()
        feeds = {name: array for name, array in _feeds(tokens, past).items() if name in names}
        return session.run(None, feeds)[0][0, -1]

    return step


def openvino(folder: Path, exact: bool) -> Step:
    """Open the model in OpenVINO's CPU plugin."""
    import openvino as ov

    settings: dict[str, Any] = {"INFERENCE_NUM_THREADS": THREADS, "PERFORMANCE_HINT": "LATENCY"}
    if exact:
        settings |= {"INFERENCE_PRECISION_HINT": "f32", "DYNAMIC_QUANTIZATION_GROUP_SIZE": "0", "KV_CACHE_PRECISION": "f32"}
    request = ov.Core().compile_model(folder / "openvino_model.xml", "CPU", settings).create_infer_request()

    def step(tokens: np.ndarray, past: int) -> np.ndarray:
        if past == 0:
            request.reset_state()
        return next(iter(request.infer(_feeds(tokens, past)).values()))[0, -1]

    return step


def genai(folder: Path) -> Step:
    """Open the model in onnxruntime-genai."""
    import onnxruntime_genai as og

    config = og.Config(str(folder))
    model = og.Model(config)
    generator: list[Any] = []

    def step(tokens: np.ndarray, past: int) -> np.ndarray:
        if past == 0:
            parameters = og.GeneratorParams(model)
            parameters.set_search_options(max_length=tokens.shape[1] + TOKENS_OUT + 1, do_sample=False)
            generator[:] = [og.Generator(model, parameters)]
        generator[0].append_tokens(tokens.astype(np.int32))
        return np.asarray(generator[0].get_logits()).reshape(-1, VOCABULARY)[-1]

    return step


def _feeds(tokens: np.ndarray, past: int) -> dict[str, np.ndarray]:
    count = tokens.shape[1]
    return {
        "input_ids": tokens,
        "attention_mask": np.ones((1, past + count), np.int64),
        "position_ids": np.arange(past, past + count)[None],
        "beam_idx": np.zeros(1, np.int32),
    }


def load(contender: str, folder: Path, kind: str) -> Step:
    """Load a contender."""
    if contender == GENAI:
        return genai(folder / "genai")
    if contender in (EXACT, SHIPPED):
        return openvino(folder / kind, contender == EXACT)
    if contender == PLAIN:
        return ours(folder / kind / "model.onnx", "native")
    activations = "int8" if contender == OURS_INT8 else "float"
    return ours(folder / kind / activations / "model.onnx", "none" if contender == BODY else "native")


# -- a process ----------------------------------------------------------------------------------------------------------


def _resident() -> float:
    """Return the resident memory of this process in MiB."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    raise OSError("no VmRSS")


def child(contender: str, folder: Path, kind: str, tokens_in: int) -> None:
    """Load, then generate for each line of input; print the figures as a line of JSON each."""
    import importlib

    names = {GENAI: ["onnxruntime_genai"], EXACT: ["openvino"], SHIPPED: ["openvino"]}
    for name in names.get(contender, ["onnxruntime", "onnx_specops"]):
        importlib.import_module(name)
    before = _resident()
    start = time.perf_counter()
    step = load(contender, folder, kind)
    print(json.dumps({"load": time.perf_counter() - start}), flush=True)
    prompt = np.random.default_rng(0).integers(3, VOCABULARY, (1, tokens_in))
    for _ in sys.stdin:
        start = time.perf_counter()
        tokens, seconds, chosen = prompt, [], []
        past = 0
        for _ in range(TOKENS_OUT):
            start = time.perf_counter()
            logits = step(tokens, past)
            seconds.append(time.perf_counter() - start)
            past += tokens.shape[1]
            tokens = np.array([[int(logits.argmax())]])
            chosen.append(int(tokens[0, 0]))
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        figures = {"first": seconds[0], "next": statistics.median(seconds[1:]), "tokens": chosen}
        print(json.dumps(figures | {"memory": _resident() - before, "most": most - before}), flush=True)


class Process:
    """A contender's process."""

    def __init__(self, contender: str, folder: Path, kind: str, tokens_in: int, python: str) -> None:
        command = [python, __file__, "child", str(folder), contender, kind, "--tokens", str(tokens_in)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.load = self._read()["load"]

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"{self._process.args} ended")
        return json.loads(line)

    def generate(self) -> dict[str, Any]:
        """Return the figures of one generation."""
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return self._read()

    def close(self) -> None:
        self._process.communicate()


# -- by context length -----------------------------------------------------------------------------------------------------

CONTEXTS = 128, 2000
CACHES = "float32", "float16", "uint8"


def alternate(model: Path, rounds: int) -> dict[int, float]:
    """Return the median milliseconds per token for each length in `CONTEXTS`. The lengths take turns with one cache."""
    import onnxruntime as ort

    import onnx_specops
    from onnx_specops.runtime.variables import TYPES

    options = ort.SessionOptions()
    options.intra_op_num_threads = THREADS
    options.log_severity_level = 3
    session = onnx_specops.InferenceSession(str(model), options, kernels="native")
    binding, values = session.io_binding(), []
    for value in ort.InferenceSession.get_inputs(session):
        if value.name.startswith("past"):
            _, heads, _, size = value.shape
            # Any nonzero numbers: memory that was never written is a single zero page.
            cache = np.ones((1, heads, POSITIONS, size), TYPES[value.type])
            values.append(ort.OrtValue.ortvalue_from_numpy(cache))
            binding.bind_ortvalue_input(value.name, values[-1])
            binding.bind_ortvalue_output(value.name.replace("past_key_values", "present"), values[-1])
    binding.bind_output("logits")
    binding.bind_cpu_input("input_ids", np.array([[5]]))
    masks = {tokens: np.ones((1, tokens + 1), np.int64) for tokens in CONTEXTS}
    seconds: dict[int, list[float]] = {tokens: [] for tokens in CONTEXTS}
    for _ in range(rounds):
        for tokens, mask in masks.items():
            binding.bind_cpu_input("attention_mask", mask)
            start = time.perf_counter()
            ort.InferenceSession.run_with_iobinding(session, binding)
            seconds[tokens].append(time.perf_counter() - start)
    return {tokens: statistics.median(found[2:]) * 1e3 for tokens, found in seconds.items()}


def contexts(folder: Path, kinds: Sequence[str], rounds: int, as_json: bool) -> None:
    """Print a table of milliseconds per token by context length, with a process for each kind."""
    from converters.folders.genai import write_genai
    from converters.openvino import convert as convert_model

    everything: dict[str, dict[str, list[float]]] = {}
    for kind in kinds:
        models = {}
        for activations in ("float", "int8"):
            for cache in CACHES:
                target = folder / kind / f"{activations}.{cache}"
                models[f"{activations}, {cache}"] = target / "model.onnx"
                if not (target / "model.onnx").exists():
                    write_genai(folder / kind, target, functools.partial(convert_model, activations=activations), cache)
        found: dict[str, list[list[float]]] = {name: [] for name in models}
        for _ in range(rounds):
            for name, model in models.items():
                done = subprocess.run(
                    [sys.executable, __file__, "alternate", str(model), "--rounds", "60"],
                    capture_output=True, text=True, check=True,
                )  # fmt: skip
                found[name].append(list(json.loads(done.stdout).values()))
        everything[kind] = {
            name: [statistics.median(column) for column in zip(*runs, strict=True)] for name, runs in found.items()
        }
        if not as_json:
            print(f"\n{kind}\n{'activations, cache':20}" + "".join(f"{tokens:>8}" for tokens in CONTEXTS) + "   ratio")
            for name, (few, many) in everything[kind].items():
                print(f"{name:20}{few:8.2f}{many:8.2f}{many / few:8.2f}")
    if as_json:
        print(json.dumps(everything, indent=1))


# -- the table ----------------------------------------------------------------------------------------------------------


def convert(folder: Path, kinds: Sequence[str]) -> None:
    """Convert the models for float and for 8-bit activations, unless the results exist."""
    from converters.folders.genai import write_genai
    from converters.openvino import convert as convert_model

    for kind in kinds:
        if not (folder / kind / "model.onnx").exists():
            convert_model(folder / kind / "openvino_model.xml", folder / kind / "model.onnx")
        for activations in ("float", "int8"):
            target = folder / kind / activations
            if not (target / "model.onnx").exists():
                target.mkdir(exist_ok=True)
                write_genai(folder / kind, target, functools.partial(convert_model, activations=activations))


def smallest_median(values: Sequence[float], parts: int = 3) -> float:
    """Return the smallest of the medians of consecutive parts of the measurements."""
    size = -(-len(values) // parts)
    return min(statistics.median(values[first : first + size]) for first in range(0, len(values), size))


def measure(
    folder: Path, kind: str, contenders: Sequence[str], rounds: int, tokens_in: int, python: str
) -> dict[str, dict[str, Any]]:
    """Return each contender's figures."""
    processes = {
        name: Process(name, folder, kind, tokens_in, python if name == GENAI else sys.executable) for name in contenders
    }
    for process in processes.values():
        process.generate()
    runs: dict[str, list[dict[str, Any]]] = {name: [] for name in contenders}
    for _ in range(rounds):
        for name, process in processes.items():
            time.sleep(_REST)
            runs[name].append(process.generate())
    for process in processes.values():
        process.close()
    return {
        name: {
            "load": processes[name].load,
            "tokens": all_runs[0]["tokens"],
            **{key: smallest_median([run[key] for run in all_runs]) for key in ("first", "next")},
            **{key: statistics.median(run[key] for run in all_runs) for key in ("memory", "most")},
        }
        for name, all_runs in runs.items()
    }


def show(kind: str, size: float, tokens_in: int, figures: dict[str, dict[str, Any]]) -> None:
    """Print the table of one model."""
    exact, shipped = figures.get(EXACT), figures.get(SHIPPED)
    print(f"\n{kind}, {size:.0f} MiB of weights")
    first = f"{tokens_in} tokens, ms"
    print(f"{'':18}{'load s':>8}{'MiB':>7}{first:>16}{'next, ms':>10}{'/ exact':>16}{'/ shipped':>16}  tokens")
    for name, own in figures.items():
        ratios = [
            f"{own['first'] / other['first']:.2f}  {own['next'] / other['next']:.2f}" if other else ""
            for other in (exact, shipped)
        ]
        same = "" if exact is None else sum(a == b for a, b in zip(own["tokens"], exact["tokens"], strict=True))
        print(
            f"{name:18}{own['load']:8.2f}{own['memory']:7.0f}{own['first'] * 1e3:16.1f}{own['next'] * 1e3:10.2f}"
            f"{ratios[0]:>16}{ratios[1]:>16}  {same}"
        )


def run(options: argparse.Namespace) -> None:
    """Measure and print tables."""
    kinds = options.only.split(",") if options.only else KINDS
    contenders = options.contenders.split(";") if options.contenders else CONTENDERS
    convert(options.folder, kinds)
    everything = {}
    for kind in kinds:
        those = [name for name in contenders if name != GENAI or kind == "int4"]  # its only file has 4 bits
        everything[kind] = measure(options.folder, kind, those, options.rounds, options.tokens, options.genai)
        if not options.json:
            size = (options.folder / kind / "openvino_model.bin").stat().st_size / 2**20
            show(kind, size, options.tokens, everything[kind])
    if options.json:
        print(json.dumps(everything, indent=1))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("command", choices=["make", "run", "context", "child", "alternate"])
    parser.add_argument("folder", type=Path)
    parser.add_argument("rest", nargs="*", help=argparse.SUPPRESS)
    parser.add_argument("--only", default="", help="models, separated by commas")
    parser.add_argument("--contenders", default="", help="contenders, separated by semicolons")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument(
        "--tokens", type=int, default=TOKENS_IN, help="the number of tokens in the prompt (default: %(default)s)"
    )
    parser.add_argument("--genai", default=sys.executable, help="the Python that has onnxruntime-genai")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if options.command == "make":
        make(options.folder)
    elif options.command == "child":
        child(options.rest[0], options.folder, options.rest[1], options.tokens)
    elif options.command == "alternate":
        print(json.dumps(alternate(options.folder, options.rounds)))
    elif options.command == "context":
        contexts(options.folder, options.only.split(",") if options.only else ["int4"], options.rounds, options.json)
    else:
        run(options)


if __name__ == "__main__":
    main()
