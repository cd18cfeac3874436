"""docs/targets.md: the targets, their rewrites, and the results of consumers of ONNX."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Mapping
from typing import Any

from converters.passes.spellings import SPELLINGS
from converters.targets import TARGETS, Target
from converters.targets.target import CONTROL_FLOW
from docs.parts.markdown import recorded, table
from tests.conformance.targets.consumers.table import CONSUMERS
from tests.conformance.targets.selection import HELD_OUT

_RESULTS = "tests/conformance/targets/results.json"


def rows() -> Iterator[str]:
    """The table of targets."""
    headings = ("target", "program", "opsets", "requires", "limits from", "loaded with")
    yield from table(headings, map(_target_row, TARGETS.values()))


def rewrites() -> Iterator[str]:
    """The passes for targets, with their docstrings: a sentence on the rewrite, then the reason."""
    yield from table(("rewrite", "reason", "targets"), _rewrites())


def silent_limits() -> Iterator[str]:
    """The uses of operators that programs compute incorrectly."""
    yield from table(("target", "operator", "case"), _limits())


def departing() -> Iterator[str]:
    """The networks for which OpenVINO's CPU plugin does not compute the expected results."""
    yield from (f"- {name}: it {reason}" for name, reason in sorted(recorded(_RESULTS)["departures"].items()) if reason)


def consumers() -> Iterator[str]:
    """The numbers of networks that agree, by consumer."""
    agreeing = ("agree", "held-out", "with a direct export", "direct export agrees", "only the direct export agrees")
    cells = (_consumer_row(name, recorded(_RESULTS)["versions"].get(name, ""), found) for name, found in _found())
    yield from table(("consumer", "release", *agreeing), cells)


def defaults() -> Iterator[str]:
    """The results of files for the default target, by consumer, and the targets to use instead."""
    targets = {consumer.name: consumer.target for consumer in CONSUMERS}
    cells = (_default_row(name, targets[name], found) for name, found in _found() if "onnxruntime" in found)
    headings = (
        "consumer",
        "default files that agree",
        "target to use",
        "files for it that agree",
        "an error of a default file",
    )
    yield from table(headings, cells)


def disagreements() -> Iterator[str]:
    """The networks that do not agree, with the reasons."""
    yield from table(("consumer", "network", "reason"), _disagreements())


def _found() -> list[tuple[str, Any]]:
    """Return the results of each consumer."""
    return sorted((name, found) for name, found in recorded(_RESULTS).items() if name not in ("departures", "versions"))


def _limits() -> Iterator[tuple[str, ...]]:
    for target in TARGETS.values():
        for limit in target.limits:
            if limit.silent:
                yield f"`{target.name}`", ", ".join(sorted(limit.operators)), limit.reason


def _target_row(target: Target) -> tuple[str, ...]:
    lacking = CONTROL_FLOW - target.control_flow
    flow = (
        "no control flow" if not target.control_flow else "no loops" if "Loop" in lacking else "no Scan" if lacking else ""
    )
    needs = [*(["static shapes"] if target.static else []), *([flow] if flow else [])]
    opsets = " to ".join(map(str, dict.fromkeys(target.opsets)))
    return f"`{target.name}`", target.title, opsets, ", ".join(needs), target.evidence, target.command


def _rewrites() -> Iterator[tuple[str, ...]]:
    for name, make in SPELLINGS.items():
        doc = " ".join((inspect.getdoc(make) or "").partition("Attributes:")[0].split())
        rewrite, _, reason = doc.partition(". ")
        users = [f"`{target.name}`" for target in TARGETS.values() if name in target.spellings]
        yield f"{rewrite.rstrip('.')}.", reason, ", ".join(users)


def _consumer_row(name: str, version: str, found: Mapping[str, Mapping[str, str]]) -> tuple[str, ...]:
    ours, direct = found.get("target", {}), found.get("direct", {})
    both = [network for network in direct if network in ours]
    held = [network for network in ours if network in HELD_OUT]
    tuned = [network for network in ours if network not in HELD_OUT]
    lost = [network for network in both if not direct[network] and ours[network]]
    return (
        name,
        version,
        f"{sum(not ours[network] for network in tuned)} of {len(tuned)}",
        f"{sum(not ours[network] for network in held)} of {len(held)}",
        f"{sum(not ours[network] for network in both)} of {len(both)}",
        f"{sum(not direct[network] for network in both)} of {len(both)}",
        ", ".join(lost) or "-",
    )


def _default_row(name: str, target: str, found: Mapping[str, Mapping[str, str]]) -> tuple[str, ...]:
    given, ours = found["onnxruntime"], found["target"]
    measured = [network for network in given if network in ours]
    reasons = [reason for reason in given.values() if reason]
    return (
        name,
        f"{len(given) - len(reasons)} of {len(given)}",
        f"`--target {target}`",
        f"{sum(not ours[network] for network in measured)} of {len(measured)}",
        _shortened(min(reasons, key=len)) if reasons else "-",
    )


def _disagreements() -> Iterator[tuple[str, ...]]:
    for name, found in _found():
        for network, reason in sorted(found.get("target", {}).items()):
            if reason:
                yield name, network, _shortened(reason)


def _shortened(reason: str) -> str:
    """Return the beginning of a reason, without paths, as Markdown."""
    text = re.sub(r"/\S*/(?=\S)|\^{3,}|^raise [^|]*\||\S*(Error|error): ", "", reason)
    for old, new in (("|", "/"), ("`", "'"), ("<", "\\<"), (">", "\\>"), ("*", "\\*"), ("_", "\\_")):
        text = text.replace(old, new)
    return " ".join(text.split())[:160].rstrip("\\")
