"""Compare native kernels of custom operators with OpenVINO, torch and TensorFlow in one process.

    python -m benchmarks.seeds                     # a table of ratios, and which targets are met; exit code 1 if one is not
    python -m benchmarks.seeds --only scatter      # tasks whose name contains it
    python -m benchmarks.seeds --json

Every contender has two threads, and its inputs and outputs are in its own memory before the measurement. Contenders take
turns in blocks, after a pause in which the threads of the previous one stop spinning. Figures are medians over all blocks.
Results are compared before the measurement. Packages that are not installed are omitted with a message.

Two threads on two cores need both of them, so other work on the machine slows every contender down considerably. On Linux,
``chrt -r 10 python -m benchmarks.seeds`` (as root) prevents this.
"""

from __future__ import annotations

import argparse
import functools
import importlib.util
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
from onnx import helper, numpy_helper

import onnx_specops

THREADS = 2
PAUSE = 0.03  # seconds; ONNX Runtime's threads spin for about 10 ms
BLOCK = 0.04  # seconds of a contender's block, with at least one call

Call = Callable[[], Any]
OURS = "onnx-specops"
COPY = "a copy of the data"


@dataclass
class Work:
    """A task and its contenders.

    Attributes:
        name: a description of the task.
        targets: contender -> the required speedup of ours.
        contenders: contender -> its function.
        results: contender -> the array that it computed.
        compare: raises if two results differ; ``None`` if they need not be equal (other random numbers).
    """

    name: str
    targets: Mapping[str, float]
    contenders: dict[str, Call] = field(default_factory=dict)
    results: dict[str, Callable[[], np.ndarray]] = field(default_factory=dict)
    compare: Callable[[np.ndarray, np.ndarray], None] | None = None

    def add(self, name: str, call: Call, result: Callable[[], np.ndarray] | None = None) -> None:
        """Add a contender; without a result it is not compared."""
        self.contenders[name] = call
        if result is not None:
            self.results[name] = result


@dataclass(frozen=True)
class Row:
    """The median seconds of ours and another contender."""

    name: str
    seconds: float
    other: str
    other_seconds: float
    target: float | None

    @property
    def ratio(self) -> float:
        """Return the speedup relative to the other contender."""
        return self.other_seconds / self.seconds

    @property
    def met(self) -> bool:
        """Return whether the target is met, to its number of digits."""
        return self.target is None or round(self.ratio, 1 if self.target >= 1 else 2) >= self.target


def measure(work: Work, rounds: int) -> list[Row]:
    """Measure the contenders in turns."""
    for call in work.contenders.values():
        call()
    if work.compare is not None:
        for name, result in work.results.items():
            if name != OURS:
                work.compare(work.results[OURS](), result())
    times: dict[str, list[float]] = {name: [] for name in work.contenders}
    for _ in range(rounds):
        for name, call in work.contenders.items():
            time.sleep(PAUSE)
            call()
            end = time.perf_counter() + BLOCK
            while True:
                start = time.perf_counter()
                call()
                stop = time.perf_counter()
                times[name].append(stop - start)
                if stop >= end:
                    break
    seconds = {name: statistics.median(taken) for name, taken in times.items()}
    return [
        Row(work.name, seconds[OURS], name, taken, work.targets.get(name)) for name, taken in seconds.items() if name != OURS
    ]


# ---------------------------------------------------------------------------------------------------------- contenders


def installed(module: str) -> bool:
    """Return whether a module can be imported."""
    return importlib.util.find_spec(module) is not None


def bound_session(model: onnx.ModelProto, feeds: Mapping[str, np.ndarray]) -> tuple[Call, Callable[[], np.ndarray]]:
    """Bind inputs to a session with the native kernels; return functions that run it and that return its output."""
    options = ort.SessionOptions()
    options.intra_op_num_threads = THREADS
    options.register_custom_ops_library(onnx_specops.library_path())
    session = ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    binding = session.io_binding()
    for name, array in feeds.items():
        binding.bind_ortvalue_input(name, ort.OrtValue.ortvalue_from_numpy(array))
    binding.bind_output(session.get_outputs()[0].name, "cpu")
    return functools.partial(session.run_with_iobinding, binding), lambda: binding.get_outputs()[0].numpy()


def one_node(
    op_type: str,
    inputs: Mapping[str, np.ndarray],
    output_type: Any,
    constants: Sequence[str] = (),
    domain: str = onnx_specops.DOMAIN,
    **attributes: Any,
) -> tuple[Call, Callable[[], np.ndarray]]:
    """Create a bound session of one node."""
    graph = helper.make_graph(
        [helper.make_node(op_type, list(inputs), ["output"], domain=domain, **attributes)],
        op_type,
        [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
            for name, array in inputs.items()
            if name not in constants
        ],
        [helper.make_tensor_value_info("output", helper.np_dtype_to_tensor_dtype(np.dtype(output_type)), None)],
        [numpy_helper.from_array(inputs[name], name) for name in constants],
    )
    opsets = [
        helper.make_opsetid("", 21),
        helper.make_opsetid(onnx_specops.DOMAIN, onnx_specops.OPSET_VERSION),
    ]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    return bound_session(model, {name: array for name, array in inputs.items() if name not in constants})


def openvino_model(
    build: Callable[..., Any], inputs: Mapping[str, np.ndarray], constants: Sequence[str] = ()
) -> tuple[Any, list[np.ndarray]]:
    """Return an OpenVINO model of ``build(opset, *nodes)``, and its inputs."""
    import openvino as ov
    from openvino import opset15

    nodes = [
        opset15.constant(array) if name in constants else opset15.parameter(list(array.shape), array.dtype)
        for name, array in inputs.items()
    ]
    parameters = [node for node, name in zip(nodes, inputs, strict=True) if name not in constants]
    return ov.Model([build(opset15, *nodes)], parameters), [inputs[name] for name in inputs if name not in constants]


def openvino_request(model: Any, feeds: Sequence[np.ndarray]) -> tuple[Call, Callable[[], np.ndarray]]:
    """Create a request of OpenVINO's CPU plugin with its inputs; return functions that run it and that return its output."""
    import openvino as ov

    config = {
        "INFERENCE_PRECISION_HINT": "f32",
        "INFERENCE_NUM_THREADS": THREADS,
        "PERFORMANCE_HINT": "LATENCY",
    }
    request = ov.Core().compile_model(model, "CPU", config).create_infer_request()
    for index, array in enumerate(feeds):
        request.set_input_tensor(index, ov.Tensor(array))
    return request.infer, lambda: request.get_output_tensor(0).data


def torch_call(function: Callable[..., Any], *arrays: np.ndarray) -> tuple[Call, Callable[[], np.ndarray]]:
    """Return ``function(torch, *tensors)`` as a function without arguments, and one that returns its result."""
    import torch

    torch.set_num_threads(THREADS)
    tensors = [torch.from_numpy(array) for array in arrays]

    def call() -> Any:
        with torch.inference_mode():
            return function(torch, *tensors)

    return call, lambda: call().numpy()


def torch_copy(array: np.ndarray) -> Call:
    """Return a function that copies an array: the minimum cost of any operation that keeps its input."""
    import torch

    torch.set_num_threads(THREADS)
    source = torch.from_numpy(array)
    return functools.partial(torch.empty_like(source).copy_, source)


def close(ours: np.ndarray, other: np.ndarray) -> None:
    """Check equality up to the order of summation."""
    np.testing.assert_allclose(ours, other, rtol=1e-4, atol=1e-4)


# ---------------------------------------------------------------------------------------------------------------- tasks


def embedding_bags() -> Iterator[Work]:
    """Lookups in a table of 200,000 x 64 float32."""
    rng = np.random.default_rng(0)
    table = rng.standard_normal((200_000, 64), dtype=np.float32)
    for count, size in ((2_048, 8), (65_536, 32)):
        indices, offsets = rng.integers(0, len(table), count), np.arange(0, count, size)
        inputs = {"emb_table": table, "indices": indices, "offsets": offsets}
        work = Work(
            f"EmbeddingBagOffsetsSum, {count:,} indices in bags of {size}",
            {"OpenVINO": 5.0, "torch": 1.0},
            compare=close,
        )
        work.add(OURS, *one_node("EmbeddingBagOffsetsSum", inputs, np.float32, ["emb_table"]))
        if installed("openvino"):
            build = lambda op, *nodes: op.embedding_bag_offsets_sum(*nodes)  # noqa: E731
            work.add("OpenVINO", *openvino_request(*openvino_model(build, inputs, ["emb_table"])))
        if installed("torch"):
            bag = lambda torch, t, i, o: torch.nn.functional.embedding_bag(i, t, o, mode="sum")  # noqa: E731
            work.add("torch", *torch_call(bag, table, indices, offsets))
        yield work


def scatters() -> Iterator[Work]:
    """The specification's sixth example, and 256 updates in each of 4,096 rows of 1,024."""
    rng = np.random.default_rng(0)
    for shape, updated, axis in (((1000, 256, 7, 7), (125, 20, 7, 6), 0), ((4096, 1024), (4096, 256), 1)):
        data = rng.standard_normal(shape, dtype=np.float32)
        updates = rng.standard_normal(updated, dtype=np.float32)
        repeated = rng.integers(0, shape[axis], updated)
        places = [shape[axis] if k == axis else size for k, size in enumerate(updated)]
        distinct = rng.permuted(np.indices(places)[axis], axis=axis).take(np.arange(updated[axis]), axis)
        for reduction in ("none", "sum", "mean"):
            # torch does not define which of several updates is kept.
            indices = np.ascontiguousarray(distinct) if reduction == "none" else repeated
            inputs = {"data": data, "indices": indices, "updates": updates, "axis": np.array(axis)}
            work = Work(
                f"ScatterElementsUpdate {reduction}, {'x'.join(map(str, shape))}, {'x'.join(map(str, updated))} updates",
                {"OpenVINO": 2.5, "torch": 1.0, COPY: 0.83},
                compare=close,
            )
            work.add(OURS, *one_node("ScatterElementsUpdate", inputs, np.float32, ["axis"], reduction=reduction))
            if installed("openvino"):
                build = functools.partial(_openvino_scatter, reduction)
                work.add("OpenVINO", *openvino_request(*openvino_model(build, inputs, ["axis"])))
            if installed("torch"):
                scatter = functools.partial(_torch_scatter, reduction, axis)
                work.add("torch", *torch_call(scatter, data, indices, updates))
                work.add(COPY, torch_copy(data))
            yield work


def _openvino_scatter(reduction: str, op: Any, *nodes: Any) -> Any:
    return op.scatter_elements_update(*nodes, reduction, True)


def _torch_scatter(reduction: str, axis: int, torch: Any, data: Any, indices: Any, updates: Any) -> Any:
    if reduction == "none":
        return torch.scatter(data, axis, indices, updates)
    return torch.scatter_reduce(data, axis, indices, updates, reduction)


def multinomials() -> Iterator[Work]:
    """Draws with and without replacement, bit for bit like OpenVINO."""
    rng = np.random.default_rng(0)
    for batch, classes, samples, with_replacement, target in (
        (32, 1_000, 100, True, 10.0),
        (32, 1_000, 100, False, 1.5),
        (64, 50_000, 1, False, 1.5),
    ):
        probs = rng.random((batch, classes), dtype=np.float32)
        inputs = {"probs": probs, "num_samples": np.array(samples)}
        attributes = {"with_replacement": int(with_replacement), "global_seed": 1, "op_seed": 2}
        how = "with replacement" if with_replacement else "without replacement"
        work = Work(
            f"Multinomial, {batch} x {classes:,} classes, {samples} samples {how}",
            {"OpenVINO": target},
            compare=np.testing.assert_array_equal,
        )
        work.add(OURS, *one_node("Multinomial", inputs, np.int64, ["num_samples"], **attributes))
        if installed("openvino"):
            build = functools.partial(_openvino_multinomial, with_replacement)
            work.add("OpenVINO", *openvino_request(*openvino_model(build, inputs, ["num_samples"])))
        if installed("torch"):
            draw = functools.partial(_torch_multinomial, samples, with_replacement)
            work.add("torch", torch_call(draw, probs)[0])  # different random numbers
        yield work


def _openvino_multinomial(with_replacement: bool, op: Any, *nodes: Any) -> Any:
    return op.multinomial(*nodes, "i64", with_replacement, False, 1, 2)


def _torch_multinomial(samples: int, with_replacement: bool, torch: Any, probs: Any) -> Any:
    return torch.multinomial(probs, samples, replacement=with_replacement)


def matrix_products() -> Iterator[Work]:
    """A converted IR with a transposed constant weight, against the same MatMul with a weight in row-major order."""
    if not installed("openvino"):
        return
    import openvino as ov

    from converters.openvino import convert

    rng = np.random.default_rng(0)
    weight = rng.standard_normal((1000, 1024), dtype=np.float32)
    for rows in (1, 128):
        data = rng.standard_normal((rows, 1024), dtype=np.float32)
        model, feeds = openvino_model(
            lambda op, a, b: op.matmul(a, b, transpose_a=False, transpose_b=True),
            {"a": data, "b": weight},
            ["b"],
        )
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.xml"
            ov.save_model(model, path, compress_to_fp16=False)
            converted = convert(path).model
        work = Work(f"MatMul, {rows} x 1024 x 1000, transposed constant weight", {"by hand": 1.0}, compare=close)
        work.add(OURS, *bound_session(converted, {converted.graph.input[0].name: data}))
        by_hand = {"a": data, "b": np.ascontiguousarray(weight.T)}
        work.add("by hand", *one_node("MatMul", by_hand, np.float32, ["b"], domain=""))
        work.add("OpenVINO", *openvino_request(model, feeds))
        yield work


WORKS = (embedding_bags, scatters, multinomials, matrix_products)


def vocabulary_tables() -> tuple[list[Row], dict[str, float]]:
    """Lookups against TensorFlow, and the costs of a table with 10,000,000 entries."""
    from benchmarks import vocabulary

    rows = [Row(row.name, row.seconds, row.other, row.other_seconds, row.target) for row in vocabulary.compare_lookups()]
    table = vocabulary.measure_table()
    return rows, {"bytes_per_entry": table.bytes_per_entry, "build_seconds": table.build_seconds}


# ---------------------------------------------------------------------------------------------------------------- report


def as_table(rows: Sequence[Row]) -> Any:
    """Return a table for the terminal."""
    from rich.table import Table

    table = Table(title=f"Medians, {THREADS} threads each")
    table.add_column("work")
    for column in ("ours", "against", "theirs", "ratio", "at least"):
        table.add_column(column, justify="left" if column == "against" else "right")
    for before, row in zip([None, *rows], rows, strict=False):
        first = before is None or before.name != row.name
        if first and before is not None:
            table.add_section()
        target = "" if row.target is None else f"{row.target:g}"
        style = "" if row.target is None else "green" if row.met else "bold red"
        table.add_row(
            row.name if first else "",
            in_units(row.seconds) if first else "",
            row.other,
            in_units(row.other_seconds),
            f"{row.ratio:.2f}",
            target,
            style=style,
        )
    return table


def in_units(seconds: float) -> str:
    """Format as ``12.3 us`` or ``1.23 ms``."""
    return f"{seconds * 1e6:.1f} us" if seconds < 1e-3 else f"{seconds * 1e3:.2f} ms"


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", default="", metavar="TEXT", help="tasks whose name contains this")
    parser.add_argument(
        "--rounds", type=int, default=15, help="the number of blocks of each contender (default: %(default)s)"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    arguments = parser.parse_args()

    wanted = arguments.only.lower()
    notes = [f"{name} is not installed: omitted" for name in ("openvino", "torch") if not installed(name)]
    rows: list[Row] = []
    for works in WORKS:
        for work in works():
            if wanted in work.name.lower():
                rows += measure(work, arguments.rounds)
    table: dict[str, float] | None = None
    if wanted in "vocabulary table":
        if installed("tensorflow"):
            more, table = vocabulary_tables()
            rows += more
        else:
            notes.append("tensorflow is not installed: vocabulary tables omitted")
    met = all(row.met for row in rows) and (
        table is None or (table["bytes_per_entry"] <= 24 and table["build_seconds"] <= 10)
    )

    if arguments.json:
        lines = [vars(row) | {"ratio": row.ratio, "met": row.met} for row in rows]
        print(json.dumps({"rows": lines, "table_of_10_000_000": table, "notes": notes, "met": met}, indent=2))
        return 0 if met else 1
    from rich.console import Console

    console = Console()
    console.print(as_table(rows))
    if table is not None:
        console.print(
            f"vocabulary table of 10,000,000 entries: {table['bytes_per_entry']:.1f} bytes an entry (at most 24), "
            f"built in {table['build_seconds']:.1f} s (at most 10)"
        )
    for note in notes:
        console.print(note)
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
