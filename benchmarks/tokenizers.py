"""Compare tokenizers and detokenizers with OpenVINO's: ratios of times for one text and for 1,000 texts (lower is better).

    python benchmarks/tokenizers.py [--processor-time] [KIND ...]

Both run the recorded models of tests/language/files in turns, with two threads each. A ratio is the median of several. With
--processor-time each has one thread, and processor time is measured, for shared machines.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort

import onnx_specops
from converters.openvino import convert

FILES = Path(__file__).parents[1] / "tests" / "language" / "files"
TEXT = "The quick brown fox, 3.14 times as quick as 你好, jumps over l'été: encore! def f(x): return x ** 2  # naïve "
THREADS, ROUNDS, SECONDS = 2, 7, 0.15


Clock = Callable[[], float]


def timed(call: Callable[[], object], clock: Clock) -> float:
    """Return the seconds per call, measured over at least `SECONDS`."""
    count, start = 0, clock()
    while (passed := clock() - start) < SECONDS:
        call()
        count += 1
    return passed / count


def ratio(ours: Callable[[], object], theirs: Callable[[], object], clock: Clock) -> tuple[float, float]:
    """Return the median ratio of our time to theirs, and our median time."""
    ours(), theirs()
    pairs = [(timed(ours, clock), timed(theirs, clock)) for _ in range(ROUNDS)]
    return statistics.median(a / b for a, b in pairs), statistics.median(a for a, _ in pairs)


def main(kinds: list[str], threads: int, clock: Clock) -> None:
    import openvino as ov
    import openvino_tokenizers  # noqa: F401

    core = ov.Core()
    core.set_property("CPU", {"INFERENCE_NUM_THREADS": threads})
    options = ort.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = threads
    print(f"{'kind':24} {'one text':>9} {'1,000':>7} {'ids, one':>9} {'ids, 1,000':>11}   ours: us a text, one and 1,000")
    for kind in kinds or sorted(folder.name for folder in FILES.iterdir()):
        cells, times = [], []
        ids: dict[int, np.ndarray] = {}
        for name in ("tokenizer", "detokenizer"):
            path = FILES / kind / f"{name}.xml"
            if not path.exists():
                continue
            session = onnx_specops.InferenceSession(convert(path).model.SerializeToString(), options, kernels="native")
            request = core.compile_model(path, "CPU").create_infer_request()
            for batch in (1, 1000):
                if name == "tokenizer":
                    texts = [TEXT[i % 17 :] for i in range(batch)]
                    feeds: list[Any] = [np.array(texts)] * len(session.get_inputs())
                    tensors = [ov.Tensor(feed) for feed in feeds]
                else:
                    feeds = [ids[batch]]
                    tensors = [ov.Tensor(feeds[0])]
                inputs = dict(zip((value.name for value in session.get_inputs()), feeds, strict=True))
                if name == "tokenizer":
                    # A view, because OpenVINO does not accept NumPy's other 64-bit type.
                    ids[batch] = session.run(["input_ids"], inputs)[0].view(np.int64)
                result, seconds = ratio(
                    lambda session=session, inputs=inputs: session.run(None, inputs),
                    lambda request=request, tensors=tensors: request.infer(tensors, share_inputs=True, share_outputs=True),
                    clock,
                )
                cells.append(f"{result:.2f}")
                times.append(seconds / batch * 1e6)
        row = [*cells, *["-"] * (4 - len(cells))]
        print(f"{kind:24} {row[0]:>9} {row[1]:>7} {row[2]:>9} {row[3]:>11}   {times[0]:.0f} {times[1]:.1f}")


if __name__ == "__main__":
    names = [name for name in sys.argv[1:] if name != "--processor-time"]
    alone = len(names) == len(sys.argv) - 1
    main(names, THREADS if alone else 1, time.perf_counter if alone else time.process_time)
