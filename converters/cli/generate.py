"""``specops generate``: text in, text out."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from converters.cli.console import err, print_json, progress
from converters.cli.failures import failures
from converters.cli.options import Debug, Json, Kernels


def generate(
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="FOLDER",
            help="A language model as specops convert --genai writes it, an encoder-decoder as specops convert does, or "
            "either as OpenVINO has it, which is converted first.",
        ),
    ],
    prompt: Annotated[str, typer.Argument(metavar="TEXT", help="The text to go on with, or to answer.")],
    tokens: Annotated[int, typer.Option(min=1, help="The most tokens to give.")] = 64,
    kernels: Annotated[Kernels, typer.Option(help="The plugin's kernels to use.")] = Kernels.auto,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Go on with a text, or answer it (encoder-decoders): the likeliest token after the other, shown as they come."""
    with failures(as_json, debug), _converted(folder, as_json) as ready:
        import onnxruntime

        from onnx_specops.generation import open_model

        # Its warnings would stand in the text; what fails raises.
        onnxruntime.set_default_logger_severity(4)
        model = open_model(ready, kernels=kernels.value)
        ids: list[int] = []
        pieces: list[str] = []
        count, started, first = 0, time.perf_counter(), 0.0
        if as_json:
            ids = list(model.generate(model.encode(prompt), tokens))
            pieces, count = [model.decode(ids)], len(ids)
        else:
            if model.goes_on:
                typer.echo(prompt, nl=False)
            for piece in model.write(prompt, tokens):
                first = first or time.perf_counter() - started
                typer.echo(piece, nl=False)
                pieces.append(piece)
            typer.echo()
            count = model.generated
        seconds = time.perf_counter() - started
        if as_json:
            print_json({"prompt": prompt, "text": "".join(pieces), "ids": ids, "tokens": count, "seconds": seconds})
        else:
            rate = count / seconds if seconds else 0.0
            err.print(f"{count} tokens, {rate:.1f} tokens/s; the first after {first:.2f} s", highlight=False)


@contextmanager
def _converted(folder: Path, as_json: bool) -> Iterator[Path]:
    """The folder, or what it becomes in a temporary place."""
    from converters.folders import encoder_decoder, language_model
    from onnx_specops.generation import CONFIG, ENCODER

    decoder = (folder / language_model.DECODER).is_file()
    pair = not decoder and (folder / encoder_decoder.ENCODER).is_file()
    ready = (folder / CONFIG).is_file() or (pair and (folder / ENCODER).is_file())
    if ready or not (decoder or pair):
        yield folder
        return
    from converters.folders.genai import write_genai
    from converters.folders.tokenizers import write_tokenizers
    from converters.openvino import convert

    with tempfile.TemporaryDirectory(prefix="specops-") as place:
        with progress(as_json) as step:
            step("converting")
            (encoder_decoder.write_encoder_decoder if pair else write_genai)(folder, Path(place), convert)
            step("converting the tokenizer")
            write_tokenizers(folder, Path(place), convert)
        yield Path(place)
