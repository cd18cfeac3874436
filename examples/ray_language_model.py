"""Generate text with a converted language model on Ray: a service on Ray Serve, or a file of prompts on Ray Data.

    specops convert FOLDER -o OUT --genai
    python examples/ray_language_model.py serve OUT --replicas 2
    curl -d '{"prompt": "Once upon a time", "tokens": 32}' localhost:8000
    python examples/ray_language_model.py write OUT prompts.parquet texts/ --workers 2

Needs `pip install onnxruntime-genai 'ray[data,serve]'`. Each replica and each actor has one model of onnxruntime-genai, and
generates the texts of several prompts together. On a cluster (`--address auto`), OUT and the data must be accessible from
every node. In the folder of this file, `serve run ray_language_model:application folder=OUT` starts the service, too.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import ray
from ray import serve
from starlette.requests import Request
from starlette.responses import JSONResponse

LARGEST_BATCH, LONGEST_WAIT = 8, 0.05


class Writer:
    """A language model that continues several prompts together.

    Args:
        folder: the output folder of ``specops convert --genai``.
        threads: the number of threads. Ray reserves as many processors.
    """

    def __init__(self, folder: str, threads: int = 1) -> None:
        import onnxruntime_genai as genai

        config = genai.Config(folder)
        config.overlay(json.dumps({"model": {"decoder": {"session_options": {"intra_op_num_threads": threads}}}}))
        self._genai = genai
        self._model = genai.Model(config)
        self._tokenizer = genai.Tokenizer(self._model)
        settings = json.loads((Path(folder) / "genai_config.json").read_text())["model"]
        ends = settings["eos_token_id"]
        self._ends = set(ends if isinstance(ends, list) else [ends])
        self._fill = settings["pad_token_id"]
        self.most = settings["context_length"] // 2
        """The longest prompt, and the longest answer. Prompts and answers of these lengths fit together in any batch."""

    def __call__(self, given: Sequence[list[int]], tokens: Sequence[int]) -> list[list[int]]:
        """Return the most likely tokens after each prompt, at most ``tokens`` of them, without the end token."""
        longest = max(map(len, given))
        parameters = self._genai.GeneratorParams(self._model)
        parameters.set_search_options(batch_size=len(given), max_length=longest + max(tokens), do_sample=False)
        generator = self._genai.Generator(self._model, parameters)
        # The padding of a shorter row follows its tokens.
        generator.append_tokens(np.array([ids + [self._fill] * (longest - len(ids)) for ids in given], np.int32))
        while not generator.is_done():
            generator.generate_next_token()
        rows = [generator.get_sequence(row).tolist()[longest:] for row in range(len(given))]
        return [self._until_end(row[:most]) for row, most in zip(rows, tokens, strict=True)]

    def encode(self, prompt: str) -> list[int]:
        """Return the tokens of a prompt.

        Raises:
            ValueError: the prompt is empty or too long.
        """
        ids: list[int] = self._tokenizer.encode(prompt).tolist()
        if not 1 <= len(ids) <= self.most:
            raise ValueError(f"the prompt has {len(ids)} tokens; specify 1 to {self.most}")
        return ids

    def text(self, ids: Sequence[int]) -> str:
        """Return the text of tokens."""
        return str(self._tokenizer.decode(np.array(ids, np.int32)))

    def _until_end(self, ids: list[int]) -> list[int]:
        return ids[: next((place for place, token in enumerate(ids) if token in self._ends), len(ids))]


# One batch is computed while the next is collected.
@serve.deployment(num_replicas=2, max_ongoing_requests=2 * LARGEST_BATCH, ray_actor_options={"num_cpus": 1})
class Service:
    """A service. A request is a JSON object: ``prompt``, and the number of ``tokens`` (32 by default)."""

    def __init__(self, folder: str) -> None:
        self._writer = Writer(folder)
        self._replica = serve.get_replica_context().replica_id.unique_id

    @serve.batch(max_batch_size=LARGEST_BATCH, batch_wait_timeout_s=LONGEST_WAIT)
    async def _answers(self, requests: list[tuple[list[int], int]]) -> list[dict[str, Any]]:
        """Return the answers to the requests that arrived together."""
        prompts, tokens = zip(*requests, strict=True)
        # In a separate thread, so that further requests are collected in the meantime.
        found = await asyncio.to_thread(self._writer, prompts, tokens)
        told = {"replica": self._replica, "batch": len(requests)}
        return [{"text": self._writer.text(ids), "ids": ids, **told} for ids in found]

    async def __call__(self, request: Request) -> JSONResponse:
        try:  # before the batch, so that a request with an error does not affect the others
            given = await request.json()
            prompt, tokens = self._writer.encode(str(given["prompt"])), int(given.get("tokens", 32))
            if not 1 <= tokens <= self._writer.most:
                raise ValueError(f"{tokens} tokens; specify 1 to {self._writer.most}")
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            return JSONResponse({"error": f"{type(error).__name__}: {error}"}, 400)
        return JSONResponse(await self._answers((prompt, tokens)))


def application(arguments: Mapping[str, str]) -> serve.Application:
    """Return the service for ``serve run``: ``folder=OUT``, and optionally ``replicas=2``."""
    folder = str(Path(arguments["folder"]).resolve())
    return Service.options(num_replicas=int(arguments.get("replicas", 2))).bind(folder)


class Column:
    """An actor of Ray Data: it adds the columns ``text`` and ``ids`` to rows with a column ``prompt``."""

    def __init__(self, folder: str, tokens: int) -> None:
        self._writer, self._tokens = Writer(folder), tokens

    def __call__(self, batch: dict[str, np.ndarray]) -> dict[str, Any]:
        prompts = [self._writer.encode(prompt) for prompt in batch["prompt"].tolist()]
        found = self._writer(prompts, [self._tokens] * len(prompts))
        return {**batch, "text": [self._writer.text(ids) for ids in found], "ids": found}


def write(folder: Path, source: Path, target: Path, tokens: int, workers: int) -> None:
    """Continue the prompts of a Parquet file, into a folder of Parquet files."""
    rows = ray.data.read_parquet(str(source), override_num_blocks=4 * workers)
    written = rows.map_batches(
        Column,
        fn_constructor_args=(str(folder.resolve()), tokens),
        batch_size=LARGEST_BATCH,
        compute=ray.data.ActorPoolStrategy(size=workers),
        num_cpus=1,
    )
    written.write_parquet(str(target))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    commands = parser.add_subparsers(required=True, dest="command")
    serving = commands.add_parser("serve", help="answer requests until the program is interrupted")
    serving.add_argument("folder", type=Path)
    serving.add_argument("--replicas", type=int, default=2, help="models, of one processor each")
    serving.add_argument("--port", type=int, default=8000)
    writing = commands.add_parser("write", help="continue the prompts of a Parquet file")
    writing.add_argument("folder", type=Path)
    writing.add_argument("source", type=Path, help="with a column 'prompt'")
    writing.add_argument("target", type=Path)
    writing.add_argument("--tokens", type=int, default=32)
    writing.add_argument("--workers", type=int, default=2, help="actors, of one processor each")
    for command in (serving, writing):
        command.add_argument("--address", help="a cluster's; by default this machine")
    given = parser.parse_args()
    if given.address:
        ray.init(given.address)
    else:  # two more processors than the models use, for requests and files
        models = given.replicas if given.command == "serve" else given.workers
        ray.init(num_cpus=models + 2, include_dashboard=False, log_to_driver=False)
    try:
        if given.command == "serve":
            serve.start(http_options={"port": given.port})
            serve.run(application({"folder": given.folder, "replicas": given.replicas}), blocking=True)
        else:
            write(given.folder, given.source, given.target, given.tokens, given.workers)
    finally:
        serve.shutdown()
        ray.shutdown()


if __name__ == "__main__":
    main()
