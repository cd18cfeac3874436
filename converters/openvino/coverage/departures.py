"""Where OpenVINO's CPU plugin parts from its own specification, as the rules state it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from converters.openvino.coverage.operations import operations
from converters.openvino.coverage.table import rule_of
from converters.openvino.rule import Departure


@dataclass(frozen=True)
class DeclaredDeparture:
    """A departure and the rules of one module that state it.

    Attributes:
        departure: the departure.
        module: the module.
        versions: the operations, with the numbers of their versions.
    """

    departure: Departure
    module: str
    versions: Mapping[str, Sequence[int]]


def declared_departures() -> list[DeclaredDeparture]:
    """Every departure that concerns operations of its own; by module, then by the first operation's name."""
    found: dict[tuple[str, Departure], dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for operation in operations():
        rule = rule_of(operation)
        for departure in rule.departs if rule else ():
            found[rule.function.__module__, departure][operation.name].append(operation.number)  # type: ignore[union-attr]
    every = [DeclaredDeparture(departure, module, versions) for (module, departure), versions in found.items()]
    return sorted(every, key=lambda stated: stated.module)
