"""Vocabulary tables: ONNX Runtime with the native kernel against TensorFlow, in one process.

    python -m benchmarks.vocabulary            # lookups against tf.lookup.StaticVocabularyTable; memory and building time
    python -m benchmarks.vocabulary --json

Lookups: a vocabulary of 1,000,000 strings, 1,000 buckets, fasthash, batches of which half the keys are unknown. The keys
lie in each runtime's own memory before the clock starts (an OrtValue, a tf.Tensor): filling it from Python strings costs
both of them more than looking up. The two take turns, so that whatever else the machine does falls on both.

Memory: two sessions whose only difference is the node that reads the vocabulary, each in a process of its own; what the one
has more than the other is the table's. Building: a session whose vocabulary might change from call to call, so that every
call builds the table; it looks up one key.
"""

from __future__ import annotations

import argparse
import ctypes
import functools
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper

import onnx_specops

VOCABULARY = 1_000_000
BUCKETS = 1_000
BATCHES = (1, 1_000, 1_000_000)
LARGE_VOCABULARY = 10_000_000
WORKLOADS = {
    "ids of 11 to 15 bytes": "item_{}",
    "ids of 37 to 47 bytes": "customer/7c9e6679-7425-40de-944b/{}",
}


@dataclass(frozen=True)
class Comparison:
    """Median seconds of one piece of work, ours and another's."""

    name: str
    seconds: float
    other: str
    other_seconds: float
    target: float

    @property
    def ratio(self) -> float:
        """How many times as fast as the other."""
        return self.other_seconds / self.seconds


@dataclass(frozen=True)
class TableCost:
    """What a table takes: memory beyond ONNX Runtime's copy of the strings, time to build it (of all its session's)."""

    entries: int
    bytes_per_entry: float
    build_seconds: float
    session_seconds: float


def string_tensor(name: str, texts: Sequence[str]) -> TensorProto:
    """A constant of strings."""
    tensor = TensorProto(name=name, data_type=TensorProto.STRING, dims=[len(texts)])
    tensor.string_data.extend([text.encode() for text in texts])
    return tensor


def string_value(texts: Sequence[str]) -> ort.OrtValue:
    """Strings in ONNX Runtime's memory (Python can make no OrtValue of strings, a session's output can be one)."""
    graph = helper.make_graph(
        [helper.make_node("Identity", ["texts"], ["output"])],
        "strings",
        [],
        [helper.make_tensor_value_info("output", TensorProto.STRING, [len(texts)])],
        [string_tensor("texts", texts)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    return ort.InferenceSession(model.SerializeToString()).run_with_ort_values(None, {})[0]


def vocabulary_model(texts: Sequence[str], use: str = "constant") -> onnx.ModelProto:
    """keys -> ids over a vocabulary.

    Args:
        texts: the vocabulary.
        use: ``"constant"``: VocabularyTable builds its table with the session. ``"variable"``: the vocabulary is an input
            with a default value, the table is built in every call. ``"equal"``: no table, Equal reads the vocabulary.
    """
    if use == "equal":
        node = helper.make_node("Equal", ["keys", "vocabulary"], ["ids"])
        output = helper.make_tensor_value_info("ids", TensorProto.BOOL, [None])
    else:
        node = helper.make_node(
            "VocabularyTable", ["keys", "vocabulary"], ["ids"], domain=onnx_specops.DOMAIN, num_oov_buckets=BUCKETS
        )
        output = helper.make_tensor_value_info("ids", TensorProto.INT64, ["n"])
    inputs = [helper.make_tensor_value_info("keys", TensorProto.STRING, ["n"])]
    if use == "variable":
        inputs.append(helper.make_tensor_value_info("vocabulary", TensorProto.STRING, [len(texts)]))
    graph = helper.make_graph([node], "table", inputs, [output], [string_tensor("vocabulary", texts)])
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid(onnx_specops.DOMAIN, onnx_specops.OPSET_VERSION)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def session_options() -> ort.SessionOptions:
    """Options with the native kernels."""
    options = ort.SessionOptions()
    options.register_custom_ops_library(str(onnx_specops.library_path()))
    return options


def medians(calls: Sequence[Callable[[], object]], seconds: float = 2.0, least: int = 7) -> list[float]:
    """The median time of each call, the calls taking turns for about ``seconds``, ``least`` times at least."""
    times: list[list[float]] = [[] for _ in calls]
    for call in calls:
        call()
    end = time.perf_counter() + seconds
    while len(times[0]) < least or time.perf_counter() < end:
        for taken, call in zip(times, calls, strict=True):
            start = time.perf_counter()
            call()
            taken.append(time.perf_counter() - start)
    return [statistics.median(taken) for taken in times]


def compare_lookups() -> list[Comparison]:
    """Lookups against TensorFlow, for every workload and size of batch."""
    import tensorflow as tf

    comparisons = []
    rng = np.random.default_rng(0)
    for workload, form in WORKLOADS.items():
        texts = [form.format(10_000_000 + 7919 * i) for i in range(VOCABULARY)]
        session = ort.InferenceSession(vocabulary_model(texts).SerializeToString(), session_options())
        table = tf.lookup.StaticVocabularyTable(
            tf.lookup.KeyValueTensorInitializer(tf.constant(texts), tf.range(VOCABULARY, dtype=tf.int64)),
            BUCKETS,
        )
        lookup = tf.function(table.lookup, input_signature=[tf.TensorSpec([None], tf.string)])
        for batch in BATCHES:
            known = rng.random(batch) < 0.5 if batch > 1 else np.array([True])
            picked = rng.integers(0, VOCABULARY, batch)
            keys = [texts[i] if k else form.format(9_999_999 - i) for i, k in zip(picked, known, strict=True)]
            binding = session.io_binding()
            binding.bind_ortvalue_input("keys", string_value(keys))
            binding.bind_output("ids", "cpu")
            tensor = tf.constant(keys)
            ours, eager, traced = medians(
                [
                    functools.partial(session.run_with_iobinding, binding),
                    functools.partial(table.lookup, tensor),
                    functools.partial(lookup, tensor),
                ]
            )
            if not np.array_equal(binding.get_outputs()[0].numpy(), lookup(tensor).numpy()):
                raise AssertionError(f"{workload}, {batch} keys: ONNX Runtime and TensorFlow differ")
            name = f"vocabulary table, {workload}, {batch:,} keys"
            other = "TensorFlow " + ("eager" if eager < traced else "function")
            comparisons.append(Comparison(name, ours, other, min(eager, traced), target=2.0))
    return comparisons


def measure_table(entries: int = LARGE_VOCABULARY) -> TableCost:
    """Memory and building time of a table of ``entries`` strings."""
    texts = [f"item_{10_000_000 + 7919 * i}" for i in range(entries)]
    costs = {}
    with tempfile.TemporaryDirectory() as folder:
        for use in ("equal", "constant", "variable"):
            path = Path(folder) / f"{use}.onnx"
            path.write_bytes(vocabulary_model(texts, use).SerializeToString())
            command = [sys.executable, "-m", "benchmarks.vocabulary", "--load", str(path)]
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            costs[use] = json.loads(done.stdout)
            path.unlink()
    extra = costs["constant"]["bytes"] - costs["equal"]["bytes"]
    return TableCost(entries, extra / entries, costs["variable"]["call"], costs["constant"]["session"])


def allocated_bytes() -> int:
    """What this process holds from malloc (glibc): the resident memory would count what is free for reuse, too."""
    fields = ["arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost"]
    structure = type("mallinfo2", (ctypes.Structure,), {"_fields_": [(name, ctypes.c_size_t) for name in fields]})
    mallinfo2 = ctypes.CDLL(None).mallinfo2
    mallinfo2.restype = structure
    info = mallinfo2()
    return info.uordblks + info.hblkhd


def _load(path: str) -> None:
    """Print what a session costs this process, and a call where that builds the table."""
    options = session_options()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL

    before, start = allocated_bytes(), time.perf_counter()
    session = ort.InferenceSession(path, options)
    cost: dict[str, float] = {"session": time.perf_counter() - start, "bytes": allocated_bytes() - before}
    if session.get_overridable_initializers():
        cost["call"] = medians([lambda: session.run(None, {"keys": np.array(["a"], object)})], least=3)[0]
    print(json.dumps(cost))


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--load", metavar="MODEL", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.load:
        _load(arguments.load)
        return
    comparisons, cost = compare_lookups(), measure_table()
    if arguments.json:
        rows = [asdict(row) | {"ratio": row.ratio} for row in comparisons]
        print(json.dumps({"lookups": rows, "table": asdict(cost)}, indent=2))
        return
    for row in comparisons:
        print(
            f"{row.name:60} {row.seconds * 1e3:9.3f} ms  {row.other:20} {row.other_seconds * 1e3:9.3f} ms"
            f"  {row.ratio:6.1f} x (at least {row.target:g})"
        )
    print(
        f"table of {cost.entries:,} entries: {cost.bytes_per_entry:.1f} bytes an entry (at most 24),"
        f" built in {cost.build_seconds:.1f} s (at most 10), its session in {cost.session_seconds:.1f} s"
    )


if __name__ == "__main__":
    main()
