"""Operators keep their signatures within a version of the domain (docs/versioning.md)."""

from __future__ import annotations

import json

import pytest

from tests.data.make_domain import PATH, domain

RECORDED, TODAY = json.loads(PATH.read_text()), domain()


def test_additions_increase_the_version() -> None:
    """Once per release. (Version 1 is open until 0.1.0 is released; until then only the record is updated.)"""
    assert TODAY["version"] >= RECORDED["version"]
    if TODAY["version"] == RECORDED["version"]:
        assert TODAY["operators"] == RECORDED["operators"], "python -m tests.data.make_domain, and see docs/versioning.md"


@pytest.mark.parametrize("name", RECORDED["operators"])
def test_operators_keep_their_signatures(name: str) -> None:
    before, now = RECORDED["operators"][name], TODAY["operators"][name]
    count = len(before["inputs"])
    assert now["inputs"][:count] == before["inputs"] and now["outputs"] == before["outputs"]
    assert all(now["optional"][count:]), "an input that is added may be left out"
    assert now["attributes"].items() >= before["attributes"].items()
    added = now["attributes"].keys() - before["attributes"].keys()
    assert all(now["attributes"][attribute] is not None for attribute in added), "an attribute that is added has a default"
    assert all(set(now["types"][variable]) >= set(types) for variable, types in before["types"].items())
