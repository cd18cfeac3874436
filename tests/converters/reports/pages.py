"""The requirements of every report page."""

from __future__ import annotations

from pathlib import Path

from lxml import html

import converters.reports

SCRIPT = (Path(converters.reports.__file__).parent / "templates" / "tables.js").read_text(encoding="utf-8").strip()
"""The only script of a page."""


def load(path: Path) -> html.HtmlElement:
    """Load a page; it must not have external references or broken internal ones."""
    text = path.read_text(encoding="utf-8")
    page = html.document_fromstring(text)
    ids = page.xpath("//@id")
    assert len(ids) == len(set(ids))
    for reference in page.xpath("//@href | //@*[name() = 'xlink:href'] | //@src"):
        assert reference.startswith("#"), reference
        assert reference[1:] in ids, reference
    assert "@import" not in text and "url(http" not in text
    assert [script.text.strip() for script in page.xpath("//script")] == [SCRIPT]
    assert all(drawing.get("aria-label") for drawing in page.xpath("//svg"))
    assert page.xpath("//meta[@name='viewport']") and "prefers-color-scheme: dark" in text
    return page


def text_of(page: html.HtmlElement, heading: str) -> str:
    """Return the text of the section with the heading."""
    (section,) = page.xpath("//section[.//h2[@id=$heading]]", heading=heading)
    return " ".join(section.text_content().split())
