"""The table of opsets and releases, and the page with the reasons beside it."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from dataclasses import dataclass


@dataclass
class Results:
    """What became of the models.

    Attributes:
        models: how many there are.
        opsets: the opsets that they were converted at.
        faults: release -> opset that it reads -> model -> what is wrong with it, ``""`` where it loads and agrees.
        refused: opset -> the models that cannot be converted at it, with the reason.
    """

    models: int
    opsets: tuple[int, ...]
    faults: dict[str, dict[int, dict[str, str]]]
    refused: defaultdict[int, Counter[str]]


def table(results: Results) -> str:
    """Opset by release: how many models load and agree."""
    lines = ["| opset | converted | " + " | ".join(results.faults) + " |", "|---" * (2 + len(results.faults)) + "|"]
    for opset in results.opsets:
        converted = results.models - sum(results.refused[opset].values())
        cells = [
            "not read" if opset not in by_opset else str(sum(not why for why in by_opset[opset].values()))
            for by_opset in results.faults.values()
        ]
        lines.append(f"| {opset} | {converted} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def written(results: Results) -> str:
    """docs/compatibility.md."""
    parts = [
        "# Opsets and releases of ONNX Runtime",
        f"{results.models} models, the repository's own and one of each kind of rule, converted at each opset, and how many "
        "of them load in a release of ONNX Runtime and give OpenVINO's answers there, without the plugin. A release that "
        "does not know an opset reads no model of it.",
        table(results),
        "Up to 1.24 ONNX Runtime does not tell several bodies of one operator apart: a model that has some, and is run "
        "without the plugin, is better converted with `--opset 20`, where the bodies stand in the graph itself.",
        "`python -m tests.compatibility FOLDER` made this page.",
        "## Why the others do not",
    ]
    reasons: defaultdict[str, set[str]] = defaultdict(set)
    for opset, names in results.refused.items():
        for name in names:
            plain = re.sub(r"opset \d+ cannot say ", "", name)
            reasons["not converted: " + "; ".join(dict.fromkeys(plain.split("; ")))].add(str(opset))
    for release, by_opset in results.faults.items():
        for opset, faults in by_opset.items():
            for key, why in faults.items():
                if why:
                    reasons[f"{key.rpartition('@')[0]}: {_short(why)}"].add(f"{release} at {opset}")
    if reasons:
        parts.append("\n".join(f"- {reason} ({', '.join(sorted(where))})" for reason, where in sorted(reasons.items())))
    else:
        parts.append("None fails.")
    return "\n\n".join(parts) + "\n"


def _short(why: str) -> str:
    """A fault without the places in ONNX Runtime's sources and the names of nodes."""
    why = re.sub(r"/\S+/onnxruntime/\S+|\[ONNXRuntimeError\] : \d+ : ", "", why)
    return re.sub(r"[\w./-]*/[\w./@:-]*(?=[ ,)'\]]|$)", "...", why)[:200].rstrip().replace("|", "/")
