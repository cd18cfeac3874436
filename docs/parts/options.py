"""The options of a conversion: the signature of `convert`, and the table in docs/command.md."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator

from converters.options import Option, in_docstring, in_markdown, options
from docs.parts.markdown import table

_WIDTH = 125


def signature() -> Iterator[str]:
    """The signature of `convert` with a keyword for each option, for editors."""
    yield "def convert("
    yield "    model: str | Path | bytes | openvino.Model,"
    yield "    onnx_path: str | Path | None = None,"
    yield "    *,"
    for one in options():
        default = json.dumps(one.default) if isinstance(one.default, str) else one.default
        yield f"    {one.name}: {one.annotation} = {default},"
    yield ") -> Conversion:"
    yield '    """Convert a model to an ONNX model that computes the same results as the model\'s own runtime.'
    yield ""
    yield from _wrapped(_KEPT, 4, 4)
    yield ""
    yield "    Args:"
    yield from _wrapped(_MODEL, 8, 12)
    yield from _wrapped("onnx_path: the file to write. If ``None``, no file is written.", 8, 12)
    for one in options():
        yield from _wrapped(f"{one.name}: {_as_phrase(in_docstring(one))}", 8, 12)
    yield ""
    yield "    Returns:"
    returns = (
        "A named tuple: ``model``, an ``onnx.ModelProto`` with the same external data as the file, and ``report``, a "
        "`Report`."
    )
    yield from _wrapped(returns, 8, 8)
    yield ""
    yield "    Raises:"
    for name, text in _RAISED.items():
        yield from _wrapped(f"{name}: {text}", 8, 12)
    yield '    """'
    yield "    options = Options("
    for one in options():
        yield f"        {one.name}={one.name},"
    yield "    )"
    yield "    return convert_with(model, onnx_path, options)"


_MODEL = (
    "model: the path of a model file, such as the .xml of an OpenVINO IR; the content of an .xml as bytes; or an "
    "``openvino.Model``."
)
_KEPT = (
    "For an OpenVINO IR, this runtime is OpenVINO's CPU plugin in float32. Inputs and outputs keep their order, names, "
    "element types and dynamic dimensions, unless ``outputs`` and ``rename`` specify others."
)
_RAISED = {
    "ConversionError": "the model has problems. The error lists all of them, each with its file, line, layer and remedy.",
    "ValueError": "an option is invalid, options contradict each other, or the output would overwrite an input.",
    "OSError": "a file cannot be written. Existing files remain unchanged.",
}


def _as_phrase(text: str) -> str:
    """Format a sentence for use after a colon."""
    first = text.split(maxsplit=1)[0]
    return text if any(letter.isupper() for letter in first[1:]) else text[:1].lower() + text[1:]


def _wrapped(text: str, first: int, others: int) -> list[str]:
    return textwrap.wrap(
        text,
        _WIDTH,
        initial_indent=" " * first,
        subsequent_indent=" " * others,
        break_long_words=False,
        break_on_hyphens=False,
    )


def rows() -> Iterator[str]:
    """The rows of a conversion's options in the command's table."""
    yield from table(("option", "meaning"), (row for one in options() for row in _option_rows(one)))


def _option_rows(one: Option) -> Iterator[tuple[str, str]]:
    said = one.description
    if not said.in_command:
        return
    if said.flags:
        for flag, text in said.flags.values():
            yield f"`{flag}`", text
    elif one.choices:
        values = ", ".join(f"`{choice}`" for choice in one.choices)
        default = "" if one.default is None else f" The default is `{one.default}`."
        yield f"`{one.flag}` {values}", in_markdown(one) + default
    else:
        spelled = f"`{one.flag} {said.metavar}".rstrip() + "`"
        yield f"{spelled}, `--no-{one.flag[2:]}`" if one.default is True else spelled, in_markdown(one)
