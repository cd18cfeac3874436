"""ONNX Runtime's times from its profile, and the values that each node of the optimized graph computes."""

from __future__ import annotations

import json
import tempfile
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
import onnx

from converters.validation.runtimes import cpu_session, infer, quiet_options
from converters.validation.times.repeating import median_seconds

_SUFFIX = "_kernel_time"


class Executed(NamedTuple):
    """A node of ONNX Runtime's optimized graph.

    Attributes:
        type: its operator.
        inputs, outputs: the names of its values.
        seconds: its mean time per inference.
    """

    type: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    seconds: float


def measure(
    model: Path,
    feeds: Mapping[str, np.ndarray],
    outputs: Sequence[str],
    kernels: Literal["native", "python", "none"],
) -> tuple[float, list[Executed]]:
    """Measure an ONNX model: the median seconds of an inference, and the executed nodes in order.

    Args:
        model: the .onnx file.
        feeds: the inputs by name.
        outputs: the requested outputs.
        kernels: the plugin's kernels.
    """
    seconds = _seconds(model, feeds, outputs, kernels)
    with tempfile.TemporaryDirectory(prefix="specops-profile-") as folder:
        options = quiet_options()
        options.enable_profiling = True
        options.profile_file_prefix = str(Path(folder, "profile"))
        options.optimized_model_filepath = str(Path(folder, "optimized.onnx"))
        options.add_session_config_entry("session.optimized_model_external_initializers_file_name", "weights.bin")
        session = cpu_session(model, kernels, options)
        runs = 0

        def run() -> None:
            nonlocal runs
            runs += 1
            infer(session, feeds, outputs)

        median_seconds(run)
        events = json.loads(Path(session.end_profiling()).read_text(encoding="utf-8"))
        optimized = onnx.load(Path(folder, "optimized.onnx"), load_external_data=False)
    return seconds, _executed(optimized.graph, events, runs)


def _seconds(
    model: Path, feeds: Mapping[str, np.ndarray], outputs: Sequence[str], kernels: Literal["native", "python", "none"]
) -> float:
    # A separate session that ends here, because two sessions disturb each other.
    session = cpu_session(model, kernels)
    return median_seconds(lambda: infer(session, feeds, outputs))


def _executed(graph: onnx.GraphProto, events: Sequence[dict], runs: int) -> list[Executed]:
    """Return the graph's nodes with their times, which include those of nested nodes."""
    times: Counter[tuple[str, str]] = Counter()
    for event in events:
        if event.get("cat") == "Node" and event["name"].endswith(_SUFFIX):
            times[event["name"].removesuffix(_SUFFIX), event["args"].get("op_name", "")] += event["dur"]
    shared = Counter((node.name, node.op_type) for node in graph.node)
    seconds = {key: times[key] / 1e6 / runs / count for key, count in shared.items()}
    return [
        Executed(node.op_type, _taken(node), tuple(filter(None, node.output)), seconds[node.name, node.op_type])
        for node in graph.node
    ]


def _taken(node: onnx.NodeProto) -> tuple[str, ...]:
    """Return the values that a node and its nested graphs use."""
    names: dict[str, None] = dict.fromkeys(filter(None, node.input))
    for attribute in node.attribute:
        for graph in (attribute.g, *attribute.graphs):
            given = {value.name for value in (*graph.input, *graph.initializer)}
            given |= {name for inner in graph.node for name in inner.output}
            names |= dict.fromkeys(name for inner in graph.node for name in _taken(inner) if name not in given)
    return tuple(names)


def clusters(nodes: Sequence[Executed], known: Mapping[str, object]) -> list[list[Executed]]:
    """Group nodes that exchange unknown values, which are not outputs of layers.

    Args:
        nodes: the nodes of a graph.
        known: the known values.
    """
    parents = list(range(len(nodes)))

    def root(place: int) -> int:
        while parents[place] != place:
            parents[place] = place = parents[parents[place]]
        return place

    makers = {name: place for place, node in enumerate(nodes) for name in node.outputs}
    for place, node in enumerate(nodes):
        for name in node.inputs:
            if name not in known and name in makers:
                parents[root(place)] = root(makers[name])
    together: dict[int, list[Executed]] = defaultdict(list)
    for place, node in enumerate(nodes):
        together[root(place)].append(node)
    return list(together.values())
