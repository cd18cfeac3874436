"""Run-time information and meta data of an IR as nested dicts."""

from __future__ import annotations

from typing import Any

from lxml import etree

from converters.openvino.reader import xml


def parse(element: etree._Element | None) -> dict[str, Any]:
    """Return the content of the element's children by name.

    A child's key is its ``name``, or else its tag. It becomes a text if it has only a ``value`` (or its own text). Otherwise
    it becomes a dict of its other attributes, its children and, as "#text", its text. Repeated children become a list. The
    parser limits the depth.
    """
    result: dict[str, Any] = {}
    for child in element if element is not None else ():
        attributes = xml.attributes(child)
        name = attributes.pop("name", child.tag)
        text = (child.text or "").strip()
        value: Any = attributes | parse(child) if len(child) else attributes
        if not text and value.keys() == {"value"}:
            value = value["value"]
        elif text:
            value = value | {"#text": text} if value else text
        if name not in result:
            result[name] = value
        elif isinstance(result[name], list):
            result[name].append(value)
        else:
            result[name] = [result[name], value]
    return result
