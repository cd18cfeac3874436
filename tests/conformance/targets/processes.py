"""The processes of consumers. One that exceeds its time limit ends together with all processes that it started."""

from __future__ import annotations

import json
import select
import subprocess
from pathlib import Path
from typing import Any

from converters.openvino.runtime.process import kill_group
from tests.conformance.targets.consumers.table import HERE, Consumer, environment_of


class Worker:
    """A process of a consumer that runs one model after another, and is restarted when it ends.

    Args:
        consumer, environments: the consumer, and the folder of its environment.
        timeout: the time limit of a model in seconds.
    """

    def __init__(self, consumer: Consumer, environments: Path, timeout: float = 30) -> None:
        self.consumer, self.environments, self.timeout = consumer, environments, timeout
        self.process: Any = None

    def run(self, *arguments: str) -> str:
        """Run the consumer's script with some arguments; return ``""`` if it ends normally, otherwise the error."""
        if self.process is None:
            command = [self.consumer.python(self.environments), str(HERE / "worker.py"), str(HERE / self.consumer.script)]
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                env=environment_of(command[0], isolated=bool(self.consumer.packages)),
                start_new_session=True,
            )
        try:
            self.process.stdin.write(json.dumps(arguments) + "\n")
            self.process.stdin.flush()
            ready, _, _ = select.select([self.process.stdout], [], [], self.timeout)
            line = self.process.stdout.readline() if ready else ""
        except BrokenPipeError:
            line, ready = "", True
        if line:
            return str(json.loads(line))
        self.close()
        return "crash" if ready else f"no answer in {self.timeout:g} seconds"

    def close(self) -> None:
        """End the process. The next model starts another."""
        if self.process is not None:
            kill_group(self.process)
            self.process = None
