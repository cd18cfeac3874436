"""Whole networks against OpenVINO: stored ones always, all with ``--networks=all`` or ``--networks=WORD,WORD``."""

from __future__ import annotations

import importlib.util
from dataclasses import asdict
from pathlib import Path

import pytest

from tests.conformance.models import kept
from tests.conformance.models.comparing import Result, check_ir
from tests.conformance.models.network import Network
from tests.conformance.models.table import NETWORKS
from tests.conformance.oracle import Oracle

KEPT = [network for network in NETWORKS if network.kept]


def test_names_are_unique():
    names = [network.name for network in NETWORKS]
    assert len(names) == len(set(names)), sorted({name for name in names if names.count(name) > 1})


def test_the_stored_files_match_the_table_and_are_small():
    files = list(kept.FILES.iterdir())
    assert sorted(files) == sorted(map(kept.archive, KEPT))
    assert sum(file.stat().st_size for file in files) < 1_500_000


@pytest.mark.parametrize("network", KEPT, ids=lambda network: network.name)
def test_kept_network(network: Network, oracle: Oracle, tmp_path: Path):
    result = check_ir(kept.unpack(network, tmp_path), network.runs(), oracle, amplifies=network.amplifies)
    assert not result.problems


@pytest.mark.network
@pytest.mark.parametrize("network", NETWORKS, ids=lambda network: network.name)
def test_network(network: Network, oracle: Oracle, tmp_path: Path, record_property):
    if importlib.util.find_spec(network.package) is None:
        pytest.skip(f"{network.package} is not installed")
    result = Result()
    try:
        result = network.check(oracle, tmp_path)
    except Exception as error:
        result.problems.append(f"{type(error).__name__}: {' '.join(str(error).split())[:500]}")
    record_property("network", asdict(result))
    assert not result.problems
