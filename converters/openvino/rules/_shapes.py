"""Whether the shapes of a layer's inputs fit together, as far as they are known."""

from __future__ import annotations

from converters.errors import Malformed
from onnx_specops.building import Builder, Value


def of_rank(op: Builder, x: Value, rank: int) -> Value:
    """``x``, which has ``rank`` dimensions: stated where the file leaves it open, for bodies that rely on it."""
    return x if x.rank is not None else op.node("Identity", x, types=[(x.dtype, [None] * rank)])


def match_shapes(**inputs: tuple[Value | None, str]) -> dict[str, int]:
    """Check shapes against what the specification says of them: ``match_shapes(boxes=(boxes, "N M 4"), scores=(scores, "N C
    M"))``.

    A name stands for one dimension throughout, ``_`` for any, ``...`` at the end for any number of them; alternatives of
    another rank are parted by ``|``. An input that is ``None`` is left out.

    Returns:
        the dimensions that are known, by name.

    Raises:
        Malformed: for a rank or a dimension that does not fit.
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
    """``form`` with as many dimensions in place of its ``...`` as make the length."""
    return [*form[:-1], *"_" * (length - len(form) + 1)] if form[-1:] == ["..."] else form
