"""docs/operators.md: the custom operators, and ONNX Runtime's operators in converted models."""

from __future__ import annotations

import re
from collections.abc import Iterator

from docs.parts.markdown import ROOT, as_markdown, recorded, table
from onnx_specops.domain import (
    CONTRIB_DOMAIN,
    MOST_ELEMENTS,
    MOST_GROWTH,
    OPSET_VERSION,
    Attribute,
    Declaration,
    Operator,
    declared,
    operators,
)

_HOSTS = "tests/hosts/operators.json"
_EXAMPLES = ROOT / "docs" / "operator_examples"
_NATIVE = ROOT / "onnx_specops" / "native" / "ops.h"


def sections() -> Iterator[str]:
    """The version of the domain, the table of operators, and a section for each operator."""
    runtimes = " and ".join(host["runtime"] for host in recorded(_HOSTS).values())
    yield f"This is version {OPSET_VERSION} of the domain. Kernels reject an output with more than {MOST_ELEMENTS:,}"
    yield f"elements if it also has more than {MOST_GROWTH:,} times as many elements as all inputs together. The"
    yield f"JavaScript results are those of {runtimes}."
    yield ""
    yield from table(("operator", "description", "implementations", "JavaScript"), map(_row, operators()))
    for operator in operators():
        yield ""
        yield from _section(operator)


def contrib_rows() -> Iterator[str]:
    """The table of ONNX Runtime's operators."""
    rows = ((operator.name, _first(operator), _measured(operator.name)) for operator in declared(CONTRIB_DOMAIN))
    yield from table(("operator", "description", "JavaScript"), rows)


def forms_of(operator: Operator) -> list[str]:
    """Return the implementations of an operator in the project, regardless of this installation."""
    written = re.findall(r"^const Op& (\w+)\(\);", _NATIVE.read_text(encoding="utf-8"), re.MULTILINE)
    module = operator.kernel.__module__.rpartition(".")[2]
    present = {"body": operator.emit_body is not None, "Python": True, "native": module in written}
    return [form for form, there in present.items() if there]


def _row(operator: Operator) -> tuple[str, ...]:
    name = f"[{operator.name}](#{operator.name.lower()})"
    return name, _first(operator), ", ".join(forms_of(operator)), _in_javascript(operator)


def _in_javascript(operator: Operator) -> str:
    return "no body" if operator.emit_body is None else _measured(operator.name)


def _measured(name: str) -> str:
    """Return the number of models in which an operator ran and agreed."""
    entries = [host["operators"].get(name) for host in recorded(_HOSTS).values()]
    cells = ["not measured" if entry is None else f"{entry['agree']} of {entry['models']}" for entry in entries]
    return ", ".join(dict.fromkeys(cells))


def _first(operator: Declaration) -> str:
    """Return the first paragraph of an operator's documentation."""
    return operator.doc.partition("\n\n")[0].replace("\n", " ")


def _section(operator: Operator) -> Iterator[str]:
    yield f"## {operator.name}"
    yield ""
    yield from as_markdown(operator.doc)
    yield ""
    outputs = ", ".join(f"`{name}` ({type_})" for name, type_ in operator.outputs.items())
    yield f"Signature: {', '.join(_inputs(operator))} → {outputs}"
    if operator.attributes:
        yield ""
        yield from table(("attribute", "type", "default", "values"), map(_attribute_row, operator.attributes.values()))
    for product in operator.products:
        yield ""
        yield f"In addition, `{' * '.join(product.factors)}` must be at most {product.most:,}."
    if operator.types:
        yield ""
        yield from table(("type", "element types"), ((name, ", ".join(types)) for name, types in operator.types.items()))
    example = _EXAMPLES / f"{operator.name}.txt"
    if example.is_file():
        yield ""
        yield "```pycon"
        yield example.read_text(encoding="utf-8").rstrip()
        yield "```"
    if operator.no_body:
        yield ""
        yield f"No body: {operator.no_body}."
    if operator.random_body:
        yield ""
        yield "The body generates different random numbers than the kernels, from the same distribution."


def _inputs(operator: Operator) -> Iterator[str]:
    for (name, type_), optional in zip(operator.inputs.items(), operator.optional, strict=True):
        yield f"`{name}` ({type_}{', optional' if optional else ''})"


def _attribute_row(attribute: Attribute) -> tuple[str, str, str, str]:
    kind = attribute.type.__name__ if isinstance(attribute.type, type) else str(attribute.type)
    default = "required" if attribute.required else f"`{attribute.default!r}`"
    return f"`{attribute.name}`", kind, default, _may_be(attribute)


def _may_be(attribute: Attribute) -> str:
    if attribute.choices:
        return ", ".join(f"`{choice!r}`" for choice in attribute.choices)
    if attribute.limits is None:
        return ""
    if attribute.limits.most is None:
        return f"{attribute.limits.least} or more"
    return f"{attribute.limits.least} to {attribute.limits.most:,}"
