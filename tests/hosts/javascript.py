"""ONNX Runtime for Node and the web, if installed: ``npm ci --ignore-scripts --prefix examples``."""

from __future__ import annotations

import contextlib
import functools
import http.server
import json
import os
import shutil
import subprocess
import threading
from collections.abc import Iterator, Mapping
from pathlib import Path

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
HERE = Path(__file__).parent
INSTALL = "npm ci --ignore-scripts --prefix examples"
SECONDS = 600


def missing(host: str) -> str:
    """Return why a host (``"node"``, ``"web"``) is not available, and the remedy; ``""`` if it is available."""
    if shutil.which("node") is None:
        return "Node is not installed"
    packages = {"node": ["onnxruntime-node"], "web": ["onnxruntime-web", "playwright-core"]}[host]
    if not all((EXAMPLES / "node_modules" / package).is_dir() for package in packages):
        return f"{' and '.join(packages)} are not installed: {INSTALL}"
    if host == "web" and not (os.environ.get("CHROMIUM") or shutil.which("chromium")):
        return "Chromium is not installed: apt-get install chromium, or CHROMIUM=..."
    return ""


def version(host: str) -> str:
    """Return package and version of a host."""
    package = f"onnxruntime-{host}"
    text = (EXAMPLES / "node_modules" / package / "package.json").read_text()
    return f"{package} {json.loads(text)['version']}"


def node(*arguments: object) -> str:
    """Return the output of a program; raise `RuntimeError` with its error output."""
    done = subprocess.run(["node", *map(str, arguments)], capture_output=True, text=True, encoding="utf-8", timeout=SECONDS)
    if done.returncode:
        raise RuntimeError(done.stdout + done.stderr)
    return done.stdout


def faults(host: str, manifest: Path) -> dict[str, str]:
    """Return the fault of each model of a manifest in a host, by key; ``""`` if there is none.

    A crash is a fault of the model, and later models are not run.
    """
    if host == "node":
        command = ["node", HERE / "in_node.mjs", manifest, EXAMPLES]
        return _told(command)
    folders = {"/tests/": HERE, "/examples/": EXAMPLES, "/": manifest.parent}
    (manifest.parent / "blank.html").write_text("<!doctype html><title>cases</title>")
    with served(folders) as url:
        return _told(["node", HERE / "in_browser.mjs", url, EXAMPLES])


def _told(command: list[object]) -> dict[str, str]:
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, encoding="utf-8", timeout=SECONDS)
    found: dict[str, str] = {}
    for line in done.stdout.splitlines():
        told = json.loads(line)
        found[told["key"]] = told.get("fault", "ends the process")
    if done.returncode and "ends the process" not in found.values():
        raise RuntimeError(done.stderr)
    return found


class _Handler(http.server.SimpleHTTPRequestHandler):
    """Serves files of several folders, selected by the beginning of the path."""

    def __init__(self, folders: Mapping[str, Path], *arguments: object) -> None:
        self._folders = folders
        super().__init__(*arguments)  # type: ignore[arg-type]

    def translate_path(self, path: str) -> str:
        prefix, folder = next((p, f) for p, f in self._folders.items() if path.startswith(p))
        self.directory = str(folder)
        return super().translate_path("/" + path.removeprefix(prefix))

    def log_message(self, *_: object) -> None:
        pass


@contextlib.contextmanager
def served(folders: Mapping[str, Path]) -> Iterator[str]:
    """Serve folders on the loopback address; yield the URL."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Handler, folders))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
