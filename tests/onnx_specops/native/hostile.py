"""Nodes whose attributes ask for the impossible, run one after another in a process of its own (``python -m``).

Says on its standard output which node it runs, before it does. An answer and an error are both right, if the NumPy kernel
and the native one agree on which; what is wrong is a node that takes longer than 20 seconds or more than 2 GB, or that ends
the process.
"""

from __future__ import annotations

import signal
import sys
import warnings
from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
from onnx import TensorProto

from onnx_specops.domain import Operator, find, operators
from tests.onnx_specops.native import nodes, test_random_layers, test_random_nodes
from tests.onnx_specops.native.nodes import Node

SECONDS, BYTES = 20, 2 * 2**30
INTEGERS = (-(2**63), -1, 0, 2**31, 2**62)
NUMBERS = (float("nan"), float("inf"), float("-inf"), 1e30, -1e30, 1e-30)


def _string_nodes() -> Iterator[Node]:
    texts = np.array(["a", "bc"], object)
    yield "StringToHashBucket", [texts], [TensorProto.INT64], {"num_buckets": 3}
    yield "VocabularyTable", [texts, texts[1:]], [TensorProto.INT64], {"num_oov_buckets": 3}


def valid_nodes(rng: np.random.Generator) -> dict[str, Node]:
    """A node of each operator, with all that it may have."""
    found: dict[str, Node] = {node[0]: node for node in _string_nodes()}
    for make in test_random_layers.MAKERS:
        candidates = [make(rng) for _ in range(20)]
        # One that has something to do: most elements that are not too many.
        node = max(candidates, key=lambda node: min(sum(np.size(a) for a in node[1] if a is not None), 4000))
        found[node[0]] = node
    for make in (test_random_nodes.scatter, test_random_nodes.multinomial):
        name, arrays, attributes = make(rng)
        type_ = TensorProto.INT64 if name == "Multinomial" else nodes.element_type(arrays[0])
        found[name] = (name, arrays, [type_], attributes)
    return found


def hostile_values(operator: Operator, name: str) -> Iterator[Any]:
    """What no one means, and the ends of what is allowed."""
    attribute = operator.attributes[name]
    if attribute.type is float:
        yield from NUMBERS
    elif attribute.type is int:
        yield from INTEGERS
        if attribute.limits is not None:
            yield from {attribute.limits.least, attribute.limits.most} - {None}
    else:
        yield "x" * 100_000


def run(form: str, node: Node) -> None:
    """Run the node in a form."""
    name, arrays, types, attributes = node
    if form == "native":
        nodes.run(name, arrays, types, attributes)
    elif form == "body":
        nodes.run_body(name, arrays, types, attributes)
    else:
        operator = find(name)
        optional = zip(arrays, operator.optional, strict=False)
        operator(*(None if is_ and np.size(array) == 0 else array for array, is_ in optional), **attributes)


def refused(form: str, node: Node) -> str:
    """What a form says of a node that it refuses; "" for an answer."""
    print(f"{form}: {node[0]} {str(node[3])[:300]}", flush=True)
    signal.alarm(SECONDS)
    try:
        run(form, node)
    except Exception as error:
        message = str(error)
        assert not isinstance(error, MemoryError) and "memory" not in message and "alloc" not in message, message
        return message
    finally:
        signal.alarm(0)
    return ""


def hostile_nodes(rng: np.random.Generator, share: float) -> Iterator[Node]:
    """A share of all of them."""
    valid = valid_nodes(rng)
    for operator in filter(lambda operator: operator.attributes, operators()):
        name, arrays, types, attributes = valid[operator.name]
        for attribute in operator.attributes:
            for value in hostile_values(operator, attribute):
                if rng.random() < share:
                    yield name, arrays, types, {**attributes, attribute: value}


def main(seed: int, share: float) -> None:
    """Run a share of all hostile nodes, of their bodies a tenth of that."""
    import resource

    rng = np.random.default_rng(seed)
    with open("/proc/self/statm") as sizes:
        address_space = int(sizes.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (address_space + BYTES, resource.RLIM_INFINITY))
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    outcomes: Counter[bool] = Counter()
    for node in hostile_nodes(rng, share):
        numpy, native = refused("numpy", node), refused("native", node)
        assert bool(numpy) == bool(native), f"numpy: {numpy or 'an answer'}; native: {native or 'an answer'}"
        outcomes[bool(numpy)] += 1
        if rng.random() < 0.1:
            refused("body", node)
    print(f"{outcomes[False]} answers, {outcomes[True]} errors")


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]))
