"""Rendering of pages from templates."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from markupsafe import Markup

from converters.outputs import Outputs
from converters.reports import formats
from onnx_specops.runtime.errors import MissingExtraError

_PACKAGES = ("onnx-specops", "openvino", "onnxruntime", "onnx", "numpy")


def write(path: Path, template: str, inputs: Iterable[Path] = (), **content: Any) -> None:
    """Write a page.

    Args:
        path: the .html file.
        template: the name of its template in ``templates/``.
        inputs: files that it may not overwrite.
        content: the variables of the template.

    Raises:
        MissingExtraError: the packages of the extra ``report`` are not installed.
        OSError: the file cannot be written.
    """
    text = render(template, **content)
    with Outputs(inputs) as outputs, outputs.open(path) as file:
        file.write(text.encode())


def render(template: str, **content: Any) -> str:
    """Render a page as text; see `write`."""
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("converters.reports"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {name: getattr(formats, name) for name in formats.__all__}
    return environment.get_template(template).render(versions=_versions(), **content)


def require() -> None:
    """Raise `MissingExtraError` if pages cannot be rendered. Call this before the work."""
    try:
        import jinja2  # noqa: F401
        import matplotlib  # noqa: F401
        import pygraphviz  # noqa: F401
    except ImportError as error:
        raise MissingExtraError(error.name or "jinja2", "--report", "report") from None


def svg(text: str) -> Markup:
    """Mark our own SVG as safe for a page."""
    return Markup(text)


def _versions() -> dict[str, str]:
    found = {}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found
