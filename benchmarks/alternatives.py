"""Compare other converters from IR to ONNX with this one on the repository's networks.

    python -m benchmarks.alternatives --onnxify PATH      # writes docs/alternatives.md

``PATH`` is the command of onnxifier (PyPI) in a separate virtual environment: ``pip install onnxifier openvino``. Both tools
convert each IR with their default options. The results run in ONNX Runtime with and without this project's plugin, and are
compared with OpenVINO's CPU plugin in float32, as `specops validate` does.
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
import zipfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from converters.errors import ConversionError
from converters.openvino import convert
from converters.validation.validate import validate

ROOT = Path(__file__).parents[1]
_PATIENCE = 300  # seconds for a conversion

_PAGE = """\
# Comparison with alternatives

<!-- Made by `python -m benchmarks.alternatives`. -->

The networks are those of this repository: `models/`, many of which need operators that ONNX lacks, and
`tests/conformance/models/files`, whose weights are random. Each is converted with the defaults of each converter, run
in ONNX Runtime with and without the plugin, and compared with OpenVINO's CPU in float32: {versions}.

| IR | onnx-specops | onnxifier |
|---|---|---|
{rows}

{totals}

`python -m benchmarks.alternatives --onnxify PATH` made this page.
"""


def models(folder: Path) -> Iterator[tuple[str, Path]]:
    """Iterate over the repository's IR files by name. Archives are unpacked into the folder."""
    for path in sorted((ROOT / "models").glob("*/*.xml")):
        yield path.parent.name if path.stem == "model" else f"{path.parent.name}/{path.stem}", path
    for archive in sorted((ROOT / "tests" / "conformance" / "models" / "files").glob("*.zip")):
        with zipfile.ZipFile(archive) as file:
            file.extractall(folder / archive.stem)
        for path in sorted((folder / archive.stem).glob("*.xml")):
            yield archive.stem if path.stem == "model" else f"{archive.stem}/{path.stem}", path


def ours(path: Path, target: Path) -> str:
    """Return the outcome of this project's conversion."""
    try:
        convert(path, target)
    except ConversionError:
        return "not converted"
    return _judged(path, target)


def theirs(command: str, path: Path, target: Path) -> str:
    """Return the outcome of onnxifier's conversion."""
    try:
        done = subprocess.run([command, str(path), str(target)], capture_output=True, timeout=_PATIENCE)
    except subprocess.TimeoutExpired:
        return "not converted"
    return "not converted" if done.returncode or not target.is_file() else _judged(path, target)


def _judged(path: Path, target: Path) -> str:
    """Return whether the result agrees, differs or does not run: the best of ONNX Runtime with and without the plugin."""
    try:
        results = validate(path, target, runtimes=["openvino", "native", "none"]).results
    except ValueError:
        return "does not run"
    ran = [result for result in results[1:] if not result.skipped]
    if not results[0].outputs or not ran:
        return "not compared"
    if any(result.outputs and result.agrees for result in ran):
        return "agrees"
    return "differs" if any(result.outputs for result in ran) else "does not run"


def main() -> None:
    """Write the page."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--onnxify", required=True, help="the command of onnxifier")
    command = arguments.parse_args().onnxify
    rows: list[tuple[str, str, str]] = []
    versions = _versions(command)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for model, path in models(folder):
            found = ours(path, folder / "ours.onnx"), theirs(command, path, folder / f"theirs-{len(rows)}.onnx")
            rows.append((model, *found))
            print(*rows[-1], sep=" | ", flush=True)
            # Written after each model, so that an interrupted run keeps its results.
            (ROOT / "docs" / "alternatives.md").write_text(page(rows, versions), encoding="utf-8")


def page(rows: Sequence[tuple[str, str, str]], versions: str) -> str:
    """Return the page, with the name of each IR and the outcomes of both converters."""
    totals = []
    for who, place in (("onnx-specops", 1), ("onnxifier", 2)):
        counts = Counter(row[place] for row in rows).most_common()
        totals.append(f"{who}: {', '.join(f'{count} {what}' for what, count in counts)}")
    table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    return _PAGE.format(versions=versions, rows=table, totals=f"{'; '.join(totals)}, of {len(rows)}.")


def _versions(command: str) -> str:
    from importlib.metadata import version

    script = "from importlib.metadata import version; print('onnxifier', version('onnxifier'))"
    python = Path(command).with_name("python")
    other = subprocess.run([str(python), "-c", script], capture_output=True, text=True).stdout.strip()
    return f"{other}, OpenVINO {version('openvino')}, ONNX Runtime {version('onnxruntime')}"


if __name__ == "__main__":
    main()
