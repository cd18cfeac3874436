"""The differences between OpenVINO's CPU plugin and its specification, as declared by rules."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from converters.openvino.coverage.operations import operations
from converters.openvino.coverage.table import rule_of
from converters.openvino.rule import Departure


@dataclass(frozen=True)
class DeclaredDeparture:
    """A departure and the rules of one module that declare it.

    Attributes:
        departure: the departure.
        module: the module.
        versions: the operations, with the numbers of their versions.
    """

    departure: Departure
    module: str
    versions: Mapping[str, Sequence[int]]


def declared_departures() -> list[DeclaredDeparture]:
    """Return all departures of specific operations, sorted by module and first operation."""
    found: dict[tuple[str, Departure], dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for operation in operations():
        rule = rule_of(operation)
        for departure in rule.departs if rule else ():
            found[rule.function.__module__, departure][operation.name].append(operation.number)  # type: ignore[union-attr]
    every = [DeclaredDeparture(departure, module, versions) for (module, departure), versions in found.items()]
    return sorted(every, key=lambda stated: stated.module)
