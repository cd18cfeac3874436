"""docs/old-ir.md: the layer types of IR 2 to 7, and public files."""

from __future__ import annotations

from collections.abc import Iterator

from converters.inference_engine import rules as _layer_rules  # noqa: F401  (importing it registers them)
from converters.inference_engine.rule import layer_rules
from docs.parts.markdown import recorded, source, table


def layers() -> Iterator[str]:
    """The number of layer types and of their cases, and the table of both."""
    record = recorded("converters/inference_engine/conformance.json")
    counts = {kind.lower(): count for kind, count in record.items()}
    rules = layer_rules()
    cases, agreeing = (sum(count[place] for count in counts.values()) for place in (0, 1))
    yield f"{len(rules)} layer types have a rule. {agreeing} of {cases} test cases agree with the Inference Engine within"
    yield "1e-4, with native kernels, with Python kernels and without the plugin."
    yield ""
    names = {"readvalue": "Memory (reads)", "assign": "Memory (writes)"}
    rows = [(kind, f"{counts[kind.lower()][1]} of {counts[kind.lower()][0]}", "reader") for kind in ("Const", "Input")]
    for kind, found in rules.items():
        count = counts.get(kind.lower())
        module = found.function.__module__
        agree = "" if count is None else f"{count[1]} of {count[0]}"
        rows.append((names.get(kind.lower(), kind), agree, source(module)))
    yield from table(("type", "cases that agree", "rule"), sorted(rows, key=lambda row: row[0].lower()))


def files() -> Iterator[str]:
    """The results of public files."""
    files = recorded("tests/conformance/inference_engine/public.json")
    agree = sum(file["outcome"].startswith("agrees") for file in files)
    yield f"{agree} of {len(files)} files agree with the Inference Engine within 1e-4."
    yield ""
    rows = [
        (
            f"[{file['repository']}](https://github.com/{file['repository']}), `{file['path']}`, {file['commit'][:7]}",
            str(file["version"]),
            str(file["layers"]),
            file["weights"],
            _short_outcome(file["outcome"]),
        )
        for file in files
    ]
    yield from table(("file", "version", "layers", "weights", "result"), rows)


def _short_outcome(outcome: str) -> str:
    text = outcome.partition(", for inputs")[0].partition("; check that")[0].replace("net.xml:", "line ")
    text = text.replace("|", "/").replace("<", "\\<").replace(">", "\\>")
    return text if len(text) < 160 else f"{text[:160]}..."
