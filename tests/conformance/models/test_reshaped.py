"""A sample of the networks at other sizes; all of them by ``python -m tests.conformance.models --reshaped``."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conformance.models import kept
from tests.conformance.models.network import Network
from tests.conformance.models.reshaped import check, chosen, sizes
from tests.conformance.models.table import NETWORKS
from tests.conformance.oracle import Oracle

SAMPLE = ("BitModel", "FNetModel", "LlamaForCausalLM", "SegformerForSemanticSegmentation", "Wav2Vec2Model")


@pytest.mark.parametrize("network", [n for n in NETWORKS if n.name in SAMPLE], ids=lambda network: network.name)
def test_network_at_other_sizes(network: Network, oracle: Oracle, tmp_path: Path) -> None:
    found = check(network, kept.unpack(network, tmp_path), oracle, chosen(network, 1, 2))
    assert not found.problems
    assert found.runs >= 3


def test_sizes() -> None:
    for network in NETWORKS:
        of = sizes(network)
        assert len({tuple(size.items()) for size in of}) == len(of)
        assert "b" not in of[0] or {size["b"] for size in of} == {1, 2, 3}
