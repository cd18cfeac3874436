"""Run-time information and meta data of an IR: whatever stands in such elements, as nested dicts."""

from __future__ import annotations

from typing import Any

from lxml import etree


def parse(element: etree._Element | None) -> dict[str, Any]:
    """What the element's children say, by name.

    A child is known by its ``name``, else by its tag. It becomes a text when it has nothing but a ``value``
    (or text of its own), else a dict of its other attributes and its children. What comes more than once
    becomes a list. The parser bounds the depth.
    """
    result: dict[str, Any] = {}
    for child in element if element is not None else ():
        attributes = dict(child.items())
        name = attributes.pop("name", child.tag)
        value: Any
        if len(child):
            value = attributes | parse(child)
        elif not attributes:
            value = (child.text or "").strip() or {}
        else:
            value = attributes["value"] if attributes.keys() == {"value"} else attributes
        if name not in result:
            result[name] = value
        elif isinstance(result[name], list):
            result[name].append(value)
        else:
            result[name] = [result[name], value]
    return result
