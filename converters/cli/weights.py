"""``specops weights``: export the weights of an IR for engines that load weights instead of graphs."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from converters.cli.console import err, out, print_json, progress
from converters.cli.failures import DIFFERENCE, failures
from converters.cli.options import Debug, Json


def weights(
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", help="The folder of a language model, as exported by optimum-intel.")
    ],
    output: Annotated[Path, typer.Option("-o", "--output", metavar="OUT", help="The output folder.")],
    hf: Annotated[
        bool,
        typer.Option(
            "--hf", help="Write safetensors with the parameter names of transformers. This is the only supported format."
        ),
    ] = True,
    decompress: Annotated[
        bool,
        typer.Option(
            "--decompress",
            help="Write float32 values instead of 4-bit and 8-bit integers, for engines that cannot load quantized weights.",
        ),
    ] = False,
    check: Annotated[
        bool | None,
        typer.Option(
            "--check/--no-check",
            help="Load OUT with transformers, and compare the logits with OpenVINO's. This is the default if OpenVINO is "
            "installed. It requires as much memory as the model in float32.",
            show_default=False,
        ),
    ] = None,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Export the weights of a language model for transformers, vLLM and SGLang."""
    with failures(as_json, debug):
        from converters.folders.weights import check_weights, write_weights

        if output.is_file():
            raise typer.BadParameter(f"{output} is a file; specify a folder", param_hint="--output")
        with progress(as_json) as step:
            step("writing the weights")
            written = write_weights(folder, output, decompress)
            distance = None
            if check or (check is None and find_spec("openvino") is not None):
                step("comparing the logits")
                distance = check_weights(folder, output)
        agrees = distance is None or distance <= 1e-4
        if as_json:
            document = {
                "files": [str(path) for path in written.files],
                "parameters": written.parameters,
                "compressed": written.compressed,
                "supplied": written.supplied,
            }
            if distance is not None:
                document["check"] = {"error": distance, "agrees": agrees}
            print_json(document)
        else:
            compressed = f", {written.compressed} of them compressed" if written.compressed else ""
            for path in written.files:
                out.print(f"{path}", highlight=False, soft_wrap=True, markup=False)
            out.print(f"{written.parameters} parameters{compressed}", highlight=False)
            if written.supplied:
                err.print(
                    f"  added {len(written.supplied)} parameters that are missing in the IR because they have no effect "
                    f"(scales of 1, offsets of 0), for example {written.supplied[0]}",
                    highlight=False, soft_wrap=True, markup=False,
                )  # fmt: skip
            if distance is None:
                err.print("  the logits were not compared with OpenVINO's", highlight=False)
            else:
                told = "agree with" if agrees else "DIFFER from"
                out.print(
                    f"the logits {told} OpenVINO's: the largest error is {distance:.1e} of the largest logit",
                    highlight=False,
                )
        if not agrees:
            raise typer.Exit(DIFFERENCE)
