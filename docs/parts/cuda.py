"""docs/targets.md: the measurements of the target cuda, which were made once on a machine with a GPU."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator
from typing import Any

from docs.parts.markdown import ROOT, table

_RESULTS = ROOT / "tests" / "conformance" / "targets" / "cuda.json"


@functools.cache
def _measured() -> dict[str, Any]:
    return json.loads(_RESULTS.read_text(encoding="utf-8"))


def counts() -> Iterator[str]:
    """The number of networks that agree, and the share of their nodes that the CPU computed."""
    networks = _measured()["networks"]
    agree = sum(not found["problem"] for found in networks.values())
    on_gpu = sum(found["nodes"] for found in networks.values())
    on_cpu = sum(sum(found["cpu"].values()) for found in networks.values())
    whole = sum(not found["cpu"] for found in networks.values())
    yield f"{_measured()['release']} ran the files on an {_measured()['device']}, without TF32:"
    yield ""
    yield f"- {agree} of {len(networks)} networks agree with the CPU provider within 1e-3."
    yield f"- {on_cpu / (on_cpu + on_gpu):.0%} of the nodes ran on the CPU. In {whole} networks, all nodes ran on the GPU."


def token_times() -> Iterator[str]:
    """The time of a token in onnxruntime-genai, by the form of the weights."""
    rows = ((weights, *(f"{time:.1f}" for time in times)) for weights, times in _measured()["tokens"].items())
    yield from table(("weights", "computed in float32", "`--fp16`"), rows)


def network_times() -> Iterator[str]:
    """The time of a run of some networks."""
    rows = ((name, *(f"{1000 * second:.1f}" for second in seconds)) for name, seconds in _measured()["seconds"].items())
    yield from table(("network", "CUDA", "CPU"), rows)
