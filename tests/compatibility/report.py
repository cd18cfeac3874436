"""The table of opsets and releases, and the page with the reasons."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field


@dataclass
class Results:
    """The results of the models.

    Attributes:
        models: the number of models.
        opsets: the opsets of the conversions.
        faults: release -> supported opset -> model -> its fault, ``""`` if it loads and agrees.
        refused: opset -> model that cannot be converted -> the reasons.
    """

    models: int
    opsets: tuple[int, ...]
    faults: dict[str, dict[int, dict[str, str]]] = field(default_factory=dict)
    refused: dict[int, dict[str, Sequence[str]]] = field(default_factory=dict)


def table(results: Results) -> str:
    """Return the table: for each opset and release, the number of models that load and agree."""
    lines = ["| opset | converted | " + " | ".join(results.faults) + " |", "|---" * (2 + len(results.faults)) + "|"]
    for opset in results.opsets:
        converted = results.models - len(results.refused.get(opset, {}))
        cells = [
            "-" if opset not in by_opset else str(sum(not why for why in by_opset[opset].values()))
            for by_opset in results.faults.values()
        ]
        lines.append(f"| {opset} | {converted} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def written(results: Results) -> str:
    """Return docs/compatibility.md."""
    parts = [
        "# Compatibility",
        f"This page shows which ONNX opsets work with which releases of ONNX Runtime. {results.models} models were "
        "converted at each opset: the models in the repository, and one for each kind of rule. *Converted* is the number of "
        "models that can be converted at an opset. The column of each release of ONNX Runtime gives the number of these "
        "models that load without the plugin and agree with OpenVINO. *-* means that the release does not support the "
        "opset.",
        table(results),
        "ONNX Runtime 1.27 and later support several function bodies for one operator. For earlier releases, a model with "
        "several bodies of an operator also contains a function that selects one of them. If there are too many bodies, "
        "these releases reject the model. The error message names the remedies: use the plugin, or convert with "
        "`--opset 20`, which replaces the operators by their bodies.",
        "`python -m tests.compatibility FOLDER` generates this page.",
        "## Unsupported models",
        _refused(results),
        "## Failures",
        _faults(results),
    ]
    return "\n\n".join(parts) + "\n"


def _refused(results: Results) -> str:
    """Return each reason once, with its models and opsets."""
    where: defaultdict[str, defaultdict[str, set[int]]] = defaultdict(lambda: defaultdict(set))
    for opset, models in results.refused.items():
        for model, reasons in models.items():
            for reason in reasons:
                where[re.sub(r"opset \d+ cannot represent ", "", reason)][model].add(opset)
    lines = [
        f"| {reason} | {', '.join(sorted(models))} | {numbers(set().union(*models.values()), results.opsets)} |"
        for reason, models in sorted(where.items())
    ]
    return "\n".join(["| reason | models | opsets |", "|---|---|---|", *lines]) if lines else "All models can be converted."


def _faults(results: Results) -> str:
    """Return each fault once, with its models, and the opsets of each release."""
    where: defaultdict[str, tuple[set[str], defaultdict[str, set[int]]]] = defaultdict(lambda: (set(), defaultdict(set)))
    for release, by_opset in results.faults.items():
        for opset, faults in by_opset.items():
            for key, why in faults.items():
                if why:
                    models, opsets = where[short(why)]
                    models.add(key.rpartition("@")[0])
                    opsets[release].add(opset)
    lines = [
        f"| {why} | {', '.join(sorted(models))} | {_releases(opsets, results)} |"
        for why, (models, opsets) in sorted(where.items())
    ]
    return "\n".join(["| fault | models | releases: opsets |", "|---|---|---|", *lines]) if lines else "None."


def _releases(opsets: Mapping[str, set[int]], results: Results) -> str:
    """Combine releases with the same opsets: ``1.16.3, 1.18.1: 15 to 19``."""
    shared: defaultdict[str, list[str]] = defaultdict(list)
    for release, some in opsets.items():
        shared[numbers(some, results.opsets)].append(release)
    return "; ".join(f"{', '.join(releases)}: {some}" for some, releases in shared.items())


def numbers(some: Iterable[int], of: Sequence[int]) -> str:
    """Format some of a list of numbers, with consecutive ones as a range: ``11 to 19, 28``."""
    chosen, runs = set(some), list[list[int]]()
    for before, number in zip([None, *of], of, strict=False):
        if number in chosen:
            if before in chosen:
                runs[-1].append(number)
            else:
                runs.append([number])
    return ", ".join(f"{run[0]} to {run[-1]}" if len(run) > 1 else str(run[0]) for run in runs)


_KINDS = (
    (r"Could not find an implementation for (\w+)\((\d+)\)", r"no kernel of \1(\2) for its types"),
    (r"(?:\[ShapeInferenceError\]|InferenceError)\W*(.*)", r"\1"),
    (r"Status Message: (.*)", r"\1"),
    (r"(OnnxRuntime_1_27_or_the_plugin_or_opset_20)", r"too many bodies of one operator"),
)


def short(why: str) -> str:
    """Shorten a fault to one line, without source locations and node names."""
    kind, _, message = why.partition(": ")
    if message:
        message = re.sub(r"/\S+/onnxruntime/\S+|\[ONNXRuntimeError\] : \d+ : [A-Z_]+ : ", "", message)
        message = re.sub(r"[\w./-]*/[\w./@:-]*(?=[ ,)'\]]|$)", "...", message)
        for pattern, replacement in _KINDS:
            if found := re.search(pattern, message):
                message = found.expand(replacement)
                break
        kind = f"{kind}: {message[:100].strip()}"
    return kind.replace("|", "/")
