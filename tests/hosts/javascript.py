"""ONNX Runtime for Node and for the web, where they are installed: ``npm ci --ignore-scripts --prefix examples``."""

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
    """Why a host (``"node"``, ``"web"``) cannot be had here, and what to do; ``""`` where it can."""
    if shutil.which("node") is None:
        return "Node is not installed"
    packages = {"node": ["onnxruntime-node"], "web": ["onnxruntime-web", "playwright-core"]}[host]
    if not all((EXAMPLES / "node_modules" / package).is_dir() for package in packages):
        return f"{' and '.join(packages)} are not installed: {INSTALL}"
    if host == "web" and not (os.environ.get("CHROMIUM") or shutil.which("chromium")):
        return "Chromium is not installed: apt-get install chromium, or CHROMIUM=..."
    return ""


def version(host: str) -> str:
    """Package and version of a host."""
    package = f"onnxruntime-{host}"
    text = (EXAMPLES / "node_modules" / package / "package.json").read_text()
    return f"{package} {json.loads(text)['version']}"


def node(*arguments: object) -> str:
    """What a program prints; raises `RuntimeError` with its complaint."""
    done = subprocess.run(["node", *map(str, arguments)], capture_output=True, text=True, encoding="utf-8", timeout=SECONDS)
    if done.returncode:
        raise RuntimeError(done.stdout + done.stderr)
    return done.stdout


def faults(host: str, manifest: Path) -> dict[str, str]:
    """What is wrong with each model of a manifest in a host: ``""`` where nothing is; by key.

    A model that ends the process is a fault of that model, and those behind it are not tried.
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
    """Files of several folders, by how the path begins."""

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
    """A server on this machine's loopback address; gives its URL."""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(_Handler, folders))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
