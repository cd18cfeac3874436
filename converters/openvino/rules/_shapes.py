"""Checks of the known shapes of a layer's inputs."""

from __future__ import annotations

from converters.errors import Malformed
from onnx_specops.building import Builder, Value


def of_rank(op: Builder, x: Value, rank: int) -> Value:
    """Set the rank of ``x`` if the file does not state it, for bodies that need it."""
    return x if x.rank is not None else op.node("Identity", x, types=[(x.dtype, [None] * rank)])


def match_shapes(**inputs: tuple[Value | None, str]) -> dict[str, int]:
    """Check shapes against the specification: ``match_shapes(boxes=(boxes, "N M 4"), scores=(scores, "N C M"))``.

    A name represents the same dimension everywhere, ``_`` any dimension, and ``...`` at the end any number of dimensions.
    Alternatives of different rank are separated by ``|``. An input that is ``None`` is skipped.

    Returns:
        The known dimensions by name.

    Raises:
        Malformed: a rank or dimension does not match.
    """
    known: dict[str, int] = {}
    for name, (value, pattern) in inputs.items():
        if value is None or value.dims is None:
            continue
        dims = value.dims
        forms = (_of_length(form.split(), len(dims)) for form in pattern.split("|"))
        form = next((form for form in forms if len(form) == len(dims)), None)
        shown = ", ".join("?" if d is None else str(d) for d in dims)
        if form is None:
            raise Malformed(f"its input {name!r} has the shape [{shown}] instead of [{', '.join(pattern.split())}]")
        for symbol, dim in zip(form, dims, strict=True):
            if dim is None or symbol == "_":
                continue
            expected = int(symbol) if symbol.isdigit() else known.setdefault(symbol, dim)
            if dim != expected:
                raise Malformed(
                    f"its input {name!r} has the shape [{shown}] instead of [{', '.join(form)}]: {dim} is not {expected}"
                )
    return known


def _of_length(form: list[str], length: int) -> list[str]:
    """Replace ``...`` in ``form`` by enough dimensions for the length."""
    return [*form[:-1], *"_" * (length - len(form) + 1)] if form[-1:] == ["..."] else form
