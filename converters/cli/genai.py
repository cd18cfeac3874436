"""``specops convert FOLDER -o OUT --genai``: convert the folder of a language model for onnxruntime-genai."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from converters.cli.console import err, out, print_json, progress

if TYPE_CHECKING:
    from converters.cli.convert import Settings

_HINT = "--genai"


def convert_folder(
    models: list[Path],
    output: Path | None,
    settings: Settings,
    as_json: bool,
) -> None:
    """Convert the decoder of one folder, its tokenizers and companion files."""
    from converters.cli import data, text
    from converters.folders.genai import write_genai
    from converters.folders.tokenizers import write_tokenizers
    from converters.folders.whole import all_or_none
    from onnx_specops.generation import DETOKENIZER, TOKENIZER

    if len(models) != 1 or not models[0].is_dir():
        raise typer.BadParameter("it requires one folder that optimum-intel wrote", param_hint=_HINT)
    if output is None or output.is_file():
        raise typer.BadParameter("specify an output folder", param_hint="--output")
    (folder,) = models
    plain = replace(settings, options=replace(settings.options, form="openvino", kv_cache=None, logits=None))
    with progress(as_json) as step, all_or_none(output, (TOKENIZER, DETOKENIZER)):
        step("converting the tokenizer")
        tokenizers, remarks = write_tokenizers(folder, output, plain.convert)
        step("converting")
        written = write_genai(
            folder,
            output,
            settings.convert,
            kv_cache=settings.options.kv_cache,
            logits=settings.options.logits,
            provider=None if settings.options.target == "onnxruntime" else settings.options.target,
        )
    remarks = [*written.remarks, *remarks]
    models = [output / name for name in written.models]
    if as_json:
        document = {"output": str(models[0]), "models": [str(path) for path in models], **data.conversion(written.report)}
        print_json({**document, "tokenizers": [str(path) for path in tokenizers], "remarks": remarks})
        return
    text.print_conversion(out, written.report, models[0])
    for path in [*models[1:], *tokenizers]:
        out.print(f"{path}", highlight=False, soft_wrap=True, markup=False)
    for remark in remarks:
        err.print(f"  {remark}", highlight=False, soft_wrap=True, markup=False)
