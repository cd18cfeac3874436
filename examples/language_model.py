"""Generate text with an OpenVINO language model in ONNX Runtime.

    python examples/language_model.py FOLDER "Once upon a time"

FOLDER is a folder that optimum-intel wrote (``optimum-cli export openvino``), or the output folder of ``specops convert
FOLDER -o OUT --genai``. If onnxruntime-genai is installed, it also generates text with this folder.
"""

from __future__ import annotations

import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

from converters.folders.genai import write_genai
from converters.folders.tokenizers import write_tokenizers
from converters.openvino import convert
from onnx_specops.generation import LanguageModel


def with_onnx_specops(folder: Path, prompt: str, tokens: int) -> str:
    """Generate with onnx_specops, and print the text as it arrives."""
    model = LanguageModel(folder)
    pieces = []
    for piece in model.write(prompt, tokens):
        print(piece, end="", flush=True)
        pieces.append(piece)
    print()
    return "".join(pieces)


def with_onnxruntime_genai(folder: Path, prompt: str, tokens: int) -> str:
    """Generate with onnxruntime-genai and its own tokenizer."""
    import onnxruntime_genai as genai

    model = genai.Model(str(folder))
    tokenizer = genai.Tokenizer(model)
    ids = tokenizer.encode(prompt)
    parameters = genai.GeneratorParams(model)
    parameters.set_search_options(max_length=len(ids) + tokens, do_sample=False)
    generator = genai.Generator(model, parameters)
    generator.append_tokens(ids)
    while not generator.is_done():
        generator.generate_next_token()
    return str(tokenizer.decode(generator.get_sequence(0)[len(ids) :]))


def main(folder: Path, prompt: str, tokens: int = 64) -> None:
    with tempfile.TemporaryDirectory() as place:
        if not (folder / "genai_config.json").is_file():
            write_genai(folder, Path(place), convert)
            write_tokenizers(folder, Path(place), convert)
            folder = Path(place)
        with_onnx_specops(folder, prompt, tokens)
        if find_spec("onnxruntime_genai"):
            print(with_onnxruntime_genai(folder, prompt, tokens))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
