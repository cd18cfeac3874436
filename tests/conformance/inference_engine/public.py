"""Compare conversions of public IR files of versions 2 to 7 with the Inference Engine, and record the results.

::

    python -m tests.conformance.inference_engine.public --clone-commands | sh     # in FOLDER: git clones OWNER+NAME
    SPECOPS_INFERENCE_ENGINE=/path/to/python python -m tests.conformance.inference_engine.public FOLDER
    python -m docs.make

``--find`` searches all commits of the clones for further files. The record is public.json. The files and their weights are
not in this repository. A file whose .bin is missing gets made-up weights.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from lxml import etree

from converters.inference_engine.baseline import EngineProcess, python
from tests.conformance.inference_engine.files import check

RESULTS = Path(__file__).with_name("public.json")
_NET = re.compile(rb"<net\s[^>]*?version\s*=\s*[\"']([2-7])[\"']")


@dataclass
class PublicFile:
    """A file in a public repository.

    Attributes:
        weights: ``"original"``, or ``"random"``.
        outcome: the result of `tests.conformance.inference_engine.files.check`.
    """

    repository: str
    commit: str
    path: str
    version: int
    layers: int
    digest: str
    weights: str = ""
    outcome: str = ""


def listed() -> list[PublicFile]:
    """Return the files of the record."""
    return [PublicFile(**row) for row in json.loads(RESULTS.read_text())] if RESULTS.exists() else []


def write(files: list[PublicFile]) -> None:
    """Write the record."""
    ordered = sorted(files, key=lambda file: (file.repository.lower(), file.path))
    RESULTS.write_text("[\n" + ",\n".join(json.dumps(asdict(file)) for file in ordered) + "\n]\n")


def _clone(folder: Path, repository: str) -> Path:
    clone = folder / repository.replace("/", "+")
    return next((path for path in (clone / "repo" / ".git", clone / "repo", clone) if path.is_dir()), clone)


def _git(clone: Path, *arguments: str) -> bytes:
    return subprocess.run(["git", "-C", str(clone), *arguments], capture_output=True, check=True).stdout


def _blob(clone: Path, commit: str, path: str) -> bytes | None:
    """Return a file of a commit; ``None`` if it is missing or a pointer to external storage."""
    try:
        content = _git(clone, "cat-file", "blob", f"{commit}:{path}")
    except subprocess.CalledProcessError:
        return None
    return None if content.startswith(b"version https://git-lfs") else content


def _digest(root: etree._Element) -> str:
    """Return a digest of the computation, which ignores metadata."""
    state = hashlib.sha256()
    for name in ("layers", "edges", "pre-process"):
        for element in root.iterfind(f"{name}//*"):
            state.update(repr((element.tag, sorted(element.attrib.items()), (element.text or "").strip())).encode())
    return state.hexdigest()[:16]


def find(folder: Path, known: list[PublicFile]) -> Iterator[PublicFile]:
    """Iterate over unknown files of the clones, newest version of each path first."""
    digests = {file.digest for file in known}
    for place in sorted(path for path in folder.iterdir() if path.is_dir() and "+" in path.name):
        repository = place.name.replace("+", "/", 1)
        clone = _clone(folder, repository)
        log = _git(clone, "log", "--all", "--diff-filter=AM", "--name-only", "--format=%x01%H", "--", "*.xml", "*.dsc")
        for entry in log.decode(errors="replace").split("\x01")[1:]:
            commit, *paths = [line for line in entry.splitlines() if line]
            for path in paths:
                content = _blob(clone, commit, path)
                if content is None or not _NET.search(content[:4096]) or b"<layer " not in content:
                    continue
                try:
                    root = etree.fromstring(content)
                except etree.XMLSyntaxError:
                    continue
                if root.tag == "net" and (digest := _digest(root)) not in digests:
                    digests.add(digest)
                    count = len(root.findall("layers/layer"))
                    yield PublicFile(repository, commit, path, int(root.get("version", 0)), count, digest)


def compare(file: PublicFile, folder: Path, engine: EngineProcess) -> None:
    """Run a file and store the result."""
    clone = _clone(folder, file.repository)
    content = _blob(clone, file.commit, file.path)
    if content is None:
        raise SystemExit(f"{clone} has no {file.path} at {file.commit}")
    weights = _blob(clone, file.commit, str(Path(file.path).with_suffix(".bin")))
    file.weights = "random" if weights is None else "original"
    with tempfile.TemporaryDirectory() as given, tempfile.TemporaryDirectory() as work:
        xml = Path(given) / "net.xml"
        xml.write_bytes(content)
        if weights is not None:
            xml.with_suffix(".bin").write_bytes(weights)
        file.outcome = check(xml, engine, Path(work)).replace(work + "/", "")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.conformance.inference_engine.public")
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--find", action="store_true")
    parser.add_argument("--missing", action="store_true", help="only files that do not agree, or have not been run")
    parser.add_argument("--only", default="", help="only files whose repository or path has this text")
    parser.add_argument("--clone-commands", action="store_true")
    given = parser.parse_args()
    files = listed()
    if given.clone_commands:
        for repository in sorted({file.repository for file in files}):
            print(f"git clone --no-checkout https://github.com/{repository} {repository.replace('/', '+')}")
        return 0
    executable = python()
    if executable is None or given.folder is None:
        raise SystemExit(__doc__)
    if given.find:
        for file in find(given.folder, files):
            print(f"{file.repository} {file.path}: version {file.version}, {file.layers} layers", flush=True)
            files.append(file)
        write(files)
    with EngineProcess(executable) as engine:
        for file in files:
            if given.only in f"{file.repository}/{file.path}" and not (given.missing and file.outcome.startswith("agrees")):
                compare(file, given.folder, engine)
                print(f"{file.repository} {file.path} ({file.weights}): {file.outcome}", flush=True)
                write(files)
    counts = Counter(file.outcome.partition(":")[0].partition(" (")[0] for file in files)
    print(dict(counts))
    return int(counts["differs"] + counts["not converted"] > 0)


if __name__ == "__main__":
    sys.exit(main())
