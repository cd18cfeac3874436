"""Vocabulary tables: ONNX Runtime with the native kernel against TensorFlow, in one process.

    python -m benchmarks.vocabulary            # lookups against tf.lookup.StaticVocabularyTable; memory and building time
    python -m benchmarks.vocabulary --json

Lookups: a vocabulary of 1,000,000 strings, 1,000 buckets, fasthash, batches in which half of the keys are unknown. The keys
    are in each runtime's own memory before the measurement (an OrtValue, a tf.Tensor), because creating them from Python
    strings takes longer than the lookup. The two take turns, so that other work on the machine affects both.

Memory: two sessions that differ only in the node that reads the vocabulary, in separate processes. The difference of their
    memory is the table's. Building time: a session whose vocabulary is a variable input, so that every call builds the
    table. It looks up one key.
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
    """The median seconds of ours and another runtime for one task."""

    name: str
    seconds: float
    other: str
    other_seconds: float
    target: float

    @property
    def ratio(self) -> float:
        """Return the speedup relative to the other runtime."""
        return self.other_seconds / self.seconds


@dataclass(frozen=True)
class TableCost:
    """The costs of a table: memory beyond ONNX Runtime's copy of the strings, and building time (and that of its
    session).
    """

    entries: int
    bytes_per_entry: float
    build_seconds: float
    session_seconds: float


def string_tensor(name: str, texts: Sequence[str]) -> TensorProto:
    """Create a constant of strings."""
    tensor = TensorProto(name=name, data_type=TensorProto.STRING, dims=[len(texts)])
    tensor.string_data.extend([text.encode() for text in texts])
    return tensor


def string_value(texts: Sequence[str]) -> ort.OrtValue:
    """Return strings as an OrtValue, through a session's output, because Python cannot create such an OrtValue."""
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
    """Return a model from keys to ids with a vocabulary.

    Args:
        texts: the vocabulary.
        use: ``"constant"``: VocabularyTable builds its table with the session. ``"variable"``: the vocabulary is an input
            with a default value, and every call builds the table. ``"equal"``: no table; Equal reads the vocabulary.
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
    """Return options with the native kernels."""
    options = ort.SessionOptions()
    options.register_custom_ops_library(str(onnx_specops.library_path()))
    return options


def medians(calls: Sequence[Callable[[], object]], seconds: float = 2.0, least: int = 7) -> list[float]:
    """Return the median time of each call. The calls take turns for about ``seconds``, at least ``least`` times."""
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
    """Compare lookups with TensorFlow, for every workload and batch size."""
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
    """Measure memory and building time of a table of ``entries`` strings."""
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
    """Return the memory allocated by malloc (glibc). The resident memory would include freed memory."""
    fields = ["arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost"]
    structure = type("mallinfo2", (ctypes.Structure,), {"_fields_": [(name, ctypes.c_size_t) for name in fields]})
    mallinfo2 = ctypes.CDLL(None).mallinfo2
    mallinfo2.restype = structure
    info = mallinfo2()
    return info.uordblks + info.hblkhd


def _load(path: str) -> None:
    """Print the memory of a session, and the time of a call that builds the table."""
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
