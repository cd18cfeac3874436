"""The command in a process of its own: it may be ended by a signal, and nothing that it imports or registers stays.

The process is forked from one that has imported the command, which takes less time than ``python -m converters.cli``.
"""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from converters.cli import main

_METHOD = "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"
_CONTEXT = multiprocessing.get_context(_METHOD)
_CONTEXT.set_forkserver_preload(
    ["converters.cli.app", "converters.cli.batch", "converters.inference_engine.rules", "converters.openvino.source"]
)


def specops(*arguments: object, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the command, with additional environment variables."""
    given = [str(argument) for argument in arguments]
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / name for name in ("out", "err")]
        process = _CONTEXT.Process(target=_run, args=(given, paths, environment))
        process.start()
        process.join()
        said = [path.read_text() for path in paths]
    assert process.exitcode is not None
    return subprocess.CompletedProcess(given, process.exitcode, *said)


def _run(arguments: list[str], paths: list[Path], environment: dict[str, str]) -> None:
    for descriptor, path in enumerate(paths, 1):
        with path.open("wb") as file:
            os.dup2(file.fileno(), descriptor)
    os.environ.update(environment)
    sys.argv = ["specops", *arguments]
    main()
