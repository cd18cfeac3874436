"""Tokenizers, models and detokenizers combined into one model, with OpenVINO's results.

    python -m tests.language.connected FOLDER

writes NAME.xml, NAME.bin and NAME.json (inputs and outputs) for each. Importing openvino_tokenizers changes OpenVINO's
factories, so the tests run this in a separate process.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

FILES = Path(__file__).parent / "files"
BEFORE = ("gpt2", "llama3_left_to_maximum", "unigram", "wordpiece", "spm_bpe_left", "spm_unigram")
BEHIND = ("gpt2", "byte_fallback", "spm_unigram")
SIZE, RESULTS = 640, 60
TEXTS = [
    "Hello world, this is a test!",
    "naïve café 👨‍👩‍👧‍👦",
    "",
    "def f(x):\n    return x ** 2",
    "今日は世界 <|endoftext|> [MASK]",
]


def main(folder: Path) -> None:
    import openvino as ov
    import openvino_tokenizers  # noqa: F401
    from openvino import opset13 as opset
    from openvino_tokenizers import add_greedy_decoding, connect_models

    core = ov.Core()

    def language_model(names: list[str]) -> Any:
        """Return the logits of every token, from its embedding and the mean of the unmasked embeddings."""
        rng = np.random.default_rng(0)
        inputs = {name: opset.parameter([-1, -1], np.int64, name) for name in names}
        for name, node in inputs.items():
            node.output(0).tensor.add_names({name})
        table = opset.constant(rng.standard_normal((SIZE, 16)).astype(np.float32))
        embedded = opset.gather(table, inputs["input_ids"], opset.constant(0))
        for other in names[2:]:
            kinds = opset.constant(rng.standard_normal((2, 16)).astype(np.float32))
            embedded = opset.add(embedded, opset.gather(kinds, inputs[other], opset.constant(0)))
        seen = opset.unsqueeze(opset.convert(inputs["attention_mask"], "f32"), opset.constant(-1))
        total = opset.reduce_sum(opset.multiply(embedded, seen), opset.constant([1]), True)
        count = opset.maximum(opset.reduce_sum(seen, opset.constant([1]), True), opset.constant(np.float32(1)))
        head = opset.constant(rng.standard_normal((16, RESULTS)).astype(np.float32))
        logits = opset.matmul(opset.add(embedded, opset.divide(total, count)), head, False, False)
        logits.output(0).tensor.add_names({"logits"})
        return ov.Model([logits.output(0)], list(inputs.values()), "language_model")

    def read(kind: str, name: str) -> Any:
        return core.read_model(FILES / kind / f"{name}.xml")

    def connected(first: Any, second: Any, **settings: Any) -> Any:
        """Connect the models, keeping a tokenizer's assignments to variables: `connect_models` drops them, and the CPU
        plugin fails.
        """
        sinks = [*first.get_sinks(), *second.get_sinks()]
        model = connect_models(first, second, **settings)
        model.add_sinks(sinks)
        return model

    def cases() -> Iterator[tuple[str, Any, list[np.ndarray]]]:
        for kind in BEFORE:
            tokenizer = read(kind, "tokenizer")
            names = [
                name
                for name in ("input_ids", "attention_mask", "token_type_ids")
                if name in {o.get_any_name() for o in tokenizer.outputs}
            ]
            yield kind, connected(tokenizer, language_model(names)), [np.array(TEXTS)]
        for kind in BEHIND:
            names = ["input_ids", "attention_mask"]
            tokens = add_greedy_decoding(language_model(names))
            whole = connected(read(kind, "tokenizer"), tokens)
            texts = connected(whole, read(kind, "detokenizer"), by_indices=True)
            yield f"{kind}_and_back", texts, [np.array(TEXTS)]

    folder.mkdir(parents=True, exist_ok=True)
    for name, model, arrays in cases():
        path = folder / f"{name}.xml"
        ov.save_model(model, path, compress_to_fp16=False)
        compiled = core.compile_model(path, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
        results = compiled([ov.Tensor(array) for array in arrays])
        outputs = [[array.dtype.kind, np.array(array).tolist()] for array in results.values()]
        text = json.dumps({"inputs": [a.tolist() for a in arrays], "outputs": outputs})
        path.with_suffix(".json").write_text(text)
    # The result of `connect_models`, with a variable without an assignment.
    left = connect_models(read("gpt2", "tokenizer"), language_model(["input_ids", "attention_mask"]))
    ov.save_model(left, folder / "gpt2_as_left.xml", compress_to_fp16=False)
    (folder / "gpt2_as_left.json").write_text((folder / "gpt2.json").read_text())


if __name__ == "__main__":
    main(Path(sys.argv[1]))
