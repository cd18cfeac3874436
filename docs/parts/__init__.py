"""The generated parts of the documentation, by file: each part is a function that returns its lines."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from docs.parts import (
    commands,
    cuda,
    departures,
    frontends,
    model_api,
    old_ir,
    operations,
    operators,
    options,
    python_api,
    targets,
)

PARTS: Mapping[str, Sequence[Callable[[], Iterable[str]]]] = {
    "converters/convert.py": [options.signature],
    "docs/command.md": [
        options.rows,
        *map(commands.options_of, ("run", "validate", "diff", "optimize", "inspect", "weights")),
    ],
    "docs/convert.md": [frontends.rows],
    "docs/departures.md": [departures.tables],
    "docs/model-api.md": [model_api.rows],
    "docs/old-ir.md": [old_ir.layers, old_ir.files],
    "docs/operations.md": [operations.rows],
    "docs/operators.md": [operators.sections, operators.contrib_rows],
    "docs/python.md": [python_api.sections],
    "docs/targets.md": [
        targets.rows,
        targets.consumers,
        targets.defaults,
        targets.departing,
        targets.disagreements,
        cuda.counts,
        cuda.token_times,
        cuda.network_times,
        targets.rewrites,
        targets.silent_limits,
    ],
}
"""A file -> its generated parts, in the order of the file."""
