"""Score a Parquet file with a converted model on Ray Data, with one session per actor, on one machine or a cluster.

    specops convert models/recommender_int/model.xml -o recommender.onnx
    python examples/ray_batch.py make requests.parquet --rows 20000
    python examples/ray_batch.py score recommender.onnx requests.parquet scored/ --workers 2

Needs `pip install onnx-specops 'ray[data]'`. A row is a visitor with the inputs of the recommender. A block of rows is one
run of the session, whose batch is dynamic. Ray splits the file, starts the actors where there are resources, and writes
Parquet files. On a cluster (`--address auto`) the model and the data must be accessible from every node: a shared folder,
s3://...
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

CANDIDATES, HISTORY = 12, 5
# The model takes the weighted bags of recent films and tags in pools of fixed size, which all visitors of a run share.
RECENT, TAGS = 24, 16

Batch = dict[str, np.ndarray]


class Recommender:
    """An actor with its own session, created where the actor runs.

    Args:
        model: the .onnx file.
        threads: the number of threads of the session. Ray reserves as many processors for each actor.
    """

    def __init__(self, model: str, threads: int) -> None:
        import onnxruntime as ort

        import onnx_specops

        options = ort.SessionOptions()
        options.intra_op_num_threads = threads
        self.session = onnx_specops.InferenceSession(model, options)

    def __call__(self, batch: Batch) -> Batch:
        """Return the best films of each visitor, and their probabilities."""
        results = self.session.run(["best_items", "best_probabilities"], feeds(batch))
        items, probabilities = (result[:-1] for result in results)
        scored_at = np.full(len(items), time.time())
        return {"visitor": batch["visitor"], "items": items, "probabilities": probabilities, "scored_at": scored_at}


def feeds(batch: Batch) -> Batch:
    """Return the model's inputs for a block of rows and for an additional row, whose bags contain the padding. The results
    of the additional row are discarded.
    """
    batch = {name: np.concatenate([values, values[-1:]]) for name, values in batch.items()}
    rows = len(batch["visitor"])
    history = np.stack(batch["history"]).reshape(-1)
    nothing = np.zeros(rows, np.int64)
    return {
        "user": batch["visitor"],
        "country": batch["country"],
        "history": history,
        "history_offsets": np.arange(rows, dtype=np.int64) * HISTORY,
        "candidates": np.stack(batch["candidates"]),
        "context": np.stack(batch["context"]).astype(np.float32),
        "seen": np.full((rows, 1), -1, np.int64),
        "shown": np.zeros((rows, 1), np.int32),
        "ratings": np.zeros((rows, 1), np.float32),
        # The rows have no recent films or tags, so their bags are empty, except the last.
        "recent": np.full(RECENT, 10301, np.int64),
        "recent_offsets": nothing.astype(np.int32),
        "recent_weights": np.zeros(RECENT, np.float32),
        "tags": np.zeros(TAGS, np.int64),
        "tag_offsets": nothing,
        "tag_weights": np.zeros(TAGS, np.float32),
    }


def make(path: Path, rows: int) -> None:
    """Write visitors with random interests."""
    rng = np.random.default_rng(5)
    columns: dict[str, Any] = {
        "visitor": rng.integers(1, 700, rows),
        "country": rng.integers(40, 52, rows),
        "history": list(rng.integers(10000, 11500, (rows, HISTORY))),
        "candidates": list(rng.integers(10000, 11500, (rows, CANDIDATES))),
        "context": list(rng.standard_normal((rows, 6)).astype(np.float32)),
    }
    # Small row groups, which Ray can distribute to several actors.
    pq.write_table(pa.table(columns), path, row_group_size=max(1, rows // 16))


def score(model: Path, source: Path, target: Path, workers: int, block: int) -> None:
    """Score a Parquet file into a folder of Parquet files."""
    import ray

    rows = ray.data.read_parquet(str(source), override_num_blocks=4 * workers)
    scored = rows.map_batches(
        Recommender,
        fn_constructor_args=(str(model.resolve()), 1),
        batch_size=block,
        compute=ray.data.ActorPoolStrategy(size=workers),
        num_cpus=1,
    )
    scored.write_parquet(str(target))


def rate(target: Path) -> float:
    """Return rows per second for the second half of the rows, when all actors have started."""
    times = np.sort(pq.read_table(target, columns=["scored_at"])["scored_at"].to_numpy())
    middle = times[len(times) // 2]
    return float((times > middle).sum() / (times[-1] - middle)) if times[-1] > middle else float("nan")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    commands = parser.add_subparsers(required=True, dest="command")
    making = commands.add_parser("make", help="write a Parquet file of random visitors")
    making.add_argument("path", type=Path)
    making.add_argument("--rows", type=int, default=20_000)
    scoring = commands.add_parser("score", help="score a Parquet file")
    scoring.add_argument("model", type=Path)
    scoring.add_argument("source", type=Path)
    scoring.add_argument("target", type=Path)
    scoring.add_argument("--workers", type=int, default=2, help="actors, of one processor each")
    scoring.add_argument("--address", help="a cluster's; by default this machine")
    scoring.add_argument("--block", type=int, default=256, help="rows a run of the session")
    given = parser.parse_args()
    if given.command == "make":
        make(given.path, given.rows)
        return
    import ray

    if given.address:
        ray.init(given.address)
    else:  # two more than the actors use, for listing and reading the files
        ray.init(num_cpus=given.workers + 2, include_dashboard=False, log_to_driver=False)
    try:
        score(given.model, given.source, given.target, given.workers, given.block)
    finally:
        ray.shutdown()
    print(f"{given.workers} workers: {rate(given.target):,.0f} rows a second")


if __name__ == "__main__":
    main()
