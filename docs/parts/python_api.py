"""docs/python.md: the public functions and classes, from their docstrings."""

from __future__ import annotations

import importlib
import inspect
import re
from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Any, ForwardRef, Literal, get_args, get_origin

from onnx_specops.generation import Sampling

_PUBLIC = {
    "converters.openvino": ("convert", "Conversion", "Report", "Problem", "ConversionError", "MalformedError"),
    "onnx_specops": ("InferenceSession", "register", "add_bodies", "optimize", "library_path"),
    "onnx_specops.generation": (
        *("open_model", "TextModel", "LanguageModel", "EncoderDecoder", "SpeechModel", "VisionLanguageModel"),
        *("Sampling", "Beams", "Hypothesis", "Segment", "GenerationError", "SettingWarning"),
    ),
}
"""Module -> the names of its functions and classes, in the order of the page."""

_WIDTH = 100
"""The longest signature on one line."""

_MOST_CHOICES = 5
"""The largest number of choices in a signature."""

_METHODS = {"InferenceSession": ("reset_state",), "TextModel": ("write", "generate", "chat", "encode", "decode")}
"""Class -> the methods to describe, if not all of those that it defines."""


def sections() -> Iterator[str]:
    """A section for each module."""
    for index, (module, names) in enumerate(_PUBLIC.items()):
        if index:
            yield ""
        yield f"## {module}"
        for name in names:
            yield from _section(name, getattr(importlib.import_module(module), name))


def _section(name: str, described: Any) -> Iterator[str]:
    yield from ("", f"### {name}", "")
    is_error = isinstance(described, type) and issubclass(described, Exception)
    if not is_error and not inspect.isabstract(described):
        yield from ("```python", *_signature(name, described), "```", "")
    yield from as_markdown(inspect.getdoc(described) or "")
    if not isinstance(described, type) or is_error:
        return
    for method in _METHODS.get(name, _own_methods(described)):
        function = inspect.getattr_static(described, method)
        yield from ("", f"#### {name}.{method}", "")
        if isinstance(function, property):
            yield from as_markdown(inspect.getdoc(function) or "")
            continue
        yield from ("```python", *_signature(method, function), "```", "")
        yield from as_markdown(inspect.getdoc(function) or "")


def _own_methods(described: type) -> list[str]:
    public = {name: value for name, value in vars(described).items() if not name.startswith("_")}
    return [name for name, value in public.items() if isinstance(value, property) or inspect.isfunction(value)]


def _signature(name: str, function: Any) -> Iterator[str]:
    """Iterate over the lines of a signature, as ruff formats them."""
    found = inspect.signature(function)
    names = vars(importlib.import_module(function.__module__))
    parameters = [_parameter(one, names) for one in found.parameters.values() if one.name != "self"]
    keyword_only = [one.kind for one in found.parameters.values() if one.name != "self"]
    if inspect.Parameter.KEYWORD_ONLY in keyword_only:
        parameters.insert(keyword_only.index(inspect.Parameter.KEYWORD_ONLY), "*")
    result = None if isinstance(function, type) else found.return_annotation
    returns = "" if result in (None, "None") else f" -> {result}"
    line = f"{name}({', '.join(parameters)}){returns}"
    if len(line) <= _WIDTH:
        yield line
        return
    yield f"{name}("
    yield from (f"    {parameter}," for parameter in parameters)
    yield f"){returns}"


def _parameter(parameter: inspect.Parameter, names: Mapping[str, Any]) -> str:
    """Format a parameter, with the choices of an alias of Literal instead of its name."""
    mark = "**" if parameter.kind is parameter.VAR_KEYWORD else ""
    hint = parameter.annotation
    hint = hint.__forward_arg__ if isinstance(hint, ForwardRef) else str(hint)
    hint = re.sub(r"\b\w+\b", lambda name: _choices(name[0], names.get(name[0])), hint)
    text = f"{mark}{parameter.name}: {hint}"
    default = parameter.default
    if default is parameter.empty:
        shown = ""
    elif isinstance(default, Enum):
        shown = f"{type(default).__name__}.{default.name}"
    elif isinstance(default, Sampling):
        shown = "Sampling()"
    else:
        shown = repr(default)
    return (text if default is parameter.empty else f"{text} = {shown}").replace("'", '"')


def _choices(name: str, value: Any) -> str:
    if get_origin(value) is not Literal:
        return name
    return f"Literal[{', '.join(map(repr, get_args(value)))}]" if len(get_args(value)) <= _MOST_CHOICES else "str"


def as_markdown(doc: str) -> Iterator[str]:
    """Convert a docstring with sections (``Args:`` and an indented ``name: text`` for each) to Markdown."""
    is_list = False
    for line in doc.splitlines():
        text = line.replace("``", "`")
        if re.fullmatch(r"(Args|Attributes|Returns|Raises|Yields):", line):
            is_list = True
            yield from (f"**{line.replace('Args', 'Arguments')}**", "")
            continue
        if line and not line.startswith(" "):
            is_list = False
        entry = re.match(r" {4}(\*{0,2}\w[\w, ]*?): (.*)", text)
        if is_list and entry:
            yield f"- `{entry[1]}`: {entry[2]}"
        elif is_list and line.strip():
            yield f"  {text.strip()}" if line.startswith("     ") else text.strip()
        else:
            yield text
