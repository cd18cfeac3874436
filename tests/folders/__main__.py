"""``python -m tests.folders``: folders of models, converted and loaded by their hosts.

pip install '.[hosts]' && npm ci --ignore-scripts --prefix tests/folders
python -m tests.folders                       # all: results.json, and the tables in docs/
python -m tests.folders bert flux             # those with these names, or whose names contain one of these
python -m tests.folders bert --dry            # neither is written
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

os.environ["HF_HUB_OFFLINE"] = "1"  # no downloads are needed

from converters.folders.weights import write_weights
from tests.folders import ALL_LEFT_OUT, hosts, hybrids
from tests.folders.language_models import COMPRESSED, CONFIGURATIONS
from tests.folders.page import write_pages
from tests.folders.subjects import ENCODERS, HYBRIDS, MAKERS, PIPELINES, SPEECH, STATELESS, VISION, make

RESULTS = Path(__file__).with_name("results.json")
LANGUAGE_MODELS = (*CONFIGURATIONS, *COMPRESSED)
_VARIANTS = [text for variant in ("fp16", "q8", "q4") for text in ("--variant", variant)]
NOT_IN_GENAI = "llava"
"""A vision-language model of which onnxruntime-genai has no type."""

_TASKS = {
    "stable-diffusion": ("text2image", "image2image", "inpainting"),
    "stable-diffusion-xl": ("text2image", "image2image", "inpainting"),
    "stable-diffusion-3": ("text2image", "image2image"),
    "latent-consistency": ("text2image", "image2image"),
}


def runs(name: str) -> Iterator[tuple[str, Callable[[Path, Path], hosts.Result]]]:
    """Iterate over the hosts of a model, with a function that runs the original and the converted folder."""
    if name in LANGUAGE_MODELS:
        yield "transformers", hosts.in_transformers
    if name == "whisper-transcripts":
        yield "onnx_specops", hosts.in_speech_model
    elif name in SPEECH:
        for search in ("greedy", "beams"):
            yield "onnxruntime-genai", partial(hosts.in_genai, search=search)
    if name in VISION:
        if name != NOT_IN_GENAI:
            yield "onnxruntime-genai", partial(hosts.in_genai_with_images, name)
            if name != "phi3-v":
                yield "onnxruntime-genai", partial(hosts.in_genai_processor, name)
        if name != "mistral3":  # OpenVINO GenAI rejects it
            # onnxruntime-genai resizes the images of a Phi-3 vision differently
            host = "onnx_specops" if name in (NOT_IN_GENAI, "phi3-v") else "onnxruntime-genai"
            yield host, partial(hosts.as_pipeline, name.removesuffix("-int8"))
    if name in HYBRIDS:
        for search in ("greedy", "beams") if name in hybrids.WITH_BEAMS else ("greedy",):
            yield "onnxruntime-genai", partial(hosts.in_genai_with_states, search=search)
    if name in PIPELINES:
        for task in _TASKS.get(name, ("text2image",)):
            yield "diffusers", partial(hosts.in_diffusers, name, task=task)
        return
    if name in ENCODERS:
        yield "optimum-onnx", partial(hosts.in_optimum, name)
    if name in STATELESS:
        for beams in (1, 3):
            yield "optimum-onnx", partial(hosts.in_optimum_without_states, name, beams=beams)
    if name == "pix2struct":
        for beams in (1, 3):
            yield "optimum-onnx", partial(hosts.in_optimum_of_patches, beams=beams)
    if name.startswith("sentence-transformer") or name.endswith(("-embedding", "-reranker")):
        yield "sentence-transformers", partial(hosts.in_sentence_transformers, name)
    if name == "sam":
        yield "Transformers.js", hosts.masks_in_transformers_js
    if name in ENCODERS:
        for dtype in hosts.DTYPES:
            yield "Transformers.js", partial(hosts.in_transformers_js, name, dtype=dtype)


def measured(name: str, place: Path) -> list[dict[str, Any]]:
    """Return a row for each host of a model that is installed."""
    source, target = place / name, place / f"{name}-onnx"
    try:
        make(name, source)
    except (AttributeError, ImportError, ValueError) as error:
        # The exporters of some models, and some hosts, require releases of transformers that exclude each other.
        print(f"{name} is left out: it cannot be exported here: {_first_line(error)}", flush=True)
        return []
    if name in LANGUAGE_MODELS:
        write_weights(source, target)  # not the command, because transformers takes seconds to import
    elif name != NOT_IN_GENAI and name in (*SPEECH, *VISION, *HYBRIDS):
        specops("convert", source, "-o", target, "--genai")
    else:
        alone = (*PIPELINES, *STATELESS, "pix2struct", NOT_IN_GENAI)
        specops("convert", source, "-o", target, *([] if name in alone else _VARIANTS))
    rows = []
    for host, run in runs(name):
        if reason := hosts.missing(host):
            print(f"{name}: {host} is left out: {reason}")
            continue
        result = run(source, target)
        rows.append({"model": name, "host": host, **asdict(result), "agrees": result.agrees})
        told = "agrees" if result.agrees else "DIFFERS"
        print(f"{name}: {host} {told}, {result.compared}: {result.error:.2g}", flush=True)
    return rows


def merged(known: list[dict[str, Any]], made: list[dict[str, Any]], names: list[str]) -> list[dict[str, Any]]:
    """Return the rows of all models in the order of their names. New rows replace those of the same models and hosts."""
    replaced = {(row["model"], row["host"]) for row in made}
    kept = [row for row in known if row["model"] in names and (row["model"], row["host"]) not in replaced]
    return sorted([*kept, *made], key=lambda row: names.index(row["model"]))


def _first_line(error: Exception) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0][:200]


def _selects(word: str, name: str, names: list[str]) -> bool:
    return word == name if word in names else word in name


def specops(*arguments: object) -> None:
    """Run the command."""
    subprocess.run([sys.executable, "-m", "converters.cli", *map(str, arguments)], check=True)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.folders")
    parser.add_argument("words", nargs="*", help="those with these names, or whose names contain one; all by default")
    parser.add_argument("--folder", type=Path, help="where the models are made, and stay; a temporary place by default")
    parser.add_argument("--dry", action="store_true", help="write neither results.json nor docs/pipelines.md")
    told = parser.parse_args()
    warnings.filterwarnings("ignore")
    names = [*ENCODERS, *MAKERS, *PIPELINES, *SPEECH, *VISION, *HYBRIDS, *LANGUAGE_MODELS]
    chosen = [name for name in names if not told.words or any(_selects(word, name, names) for word in told.words)]
    if not chosen:
        parser.error(f"no name contains {' or '.join(told.words)}: {', '.join(names)}")
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as temporary:
        place = told.folder or Path(temporary)
        place.mkdir(parents=True, exist_ok=True)
        for name in chosen:
            made = measured(name, place)
            rows += made
            if not told.dry:  # a run that is interrupted keeps the results of the models before
                known = json.loads(RESULTS.read_text()) if RESULTS.is_file() else []
                ordered = merged(known, made, names)
                RESULTS.write_text(json.dumps(ordered, indent=1) + "\n")
                write_pages(ordered)
    if not rows:
        return ALL_LEFT_OUT
    return 0 if all(row["agrees"] for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
