"""docs/targets.md: the measurements of the target cuda, which were made once on a machine with a GPU."""

from __future__ import annotations

from collections.abc import Iterator

from docs.parts.markdown import recorded, table

_RESULTS = "tests/conformance/targets/cuda.json"


def counts() -> Iterator[str]:
    """The number of networks that agree, and the share of their nodes that the CPU computed."""
    networks = recorded(_RESULTS)["networks"]
    agree = sum(not found["problem"] for found in networks.values())
    on_gpu = sum(found["nodes"] for found in networks.values())
    on_cpu = sum(sum(found["cpu"].values()) for found in networks.values())
    whole = sum(not found["cpu"] for found in networks.values())
    yield f"{recorded(_RESULTS)['release']} ran the files on an {recorded(_RESULTS)['device']}, without TF32:"
    yield ""
    yield f"- {agree} of {len(networks)} networks agree with the CPU provider within 1e-3."
    yield f"- {on_cpu / (on_cpu + on_gpu):.0%} of the nodes ran on the CPU. In {whole} networks, all nodes ran on the GPU."


def token_times() -> Iterator[str]:
    """The time of a token in onnxruntime-genai, by the form of the weights."""
    rows = ((weights, *(f"{time:.1f}" for time in times)) for weights, times in recorded(_RESULTS)["tokens"].items())
    yield from table(("weights", "computed in float32", "`--fp16`"), rows)


def network_times() -> Iterator[str]:
    """The time of a run of some networks."""
    rows = (
        (name, *(f"{1000 * second:.1f}" for second in seconds)) for name, seconds in recorded(_RESULTS)["seconds"].items()
    )
    yield from table(("network", "CUDA", "CPU"), rows)
