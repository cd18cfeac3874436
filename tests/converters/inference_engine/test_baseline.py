"""Files for the Inference Engine's process."""

from __future__ import annotations

from pathlib import Path

import pytest
from lxml import etree

from converters.inference_engine.baseline import _in_floats

NET = b'<net name="a" version="6"><layers/><statistics><layer><name>x</name></layer></statistics></net>'


def test_statistics_are_removed(tmp_path: Path) -> None:
    """With them, the result depends on the processor."""
    (tmp_path / "a.xml").write_bytes(NET)
    (tmp_path / "copy").mkdir()
    root = etree.parse(str(_in_floats(tmp_path / "a.xml", tmp_path / "copy"))).getroot()
    assert [element.tag for element in root] == ["layers"]
    assert (tmp_path / "a.xml").read_bytes() == NET


@pytest.mark.parametrize("content", [b'<net name="a" version="6"><layers/></net>', b"<net><statistics>"])
def test_other_files_are_unchanged(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "a.xml"
    path.write_bytes(content)
    assert _in_floats(path, tmp_path / "none") == path
