"""Create tests/language/files: small tokenizers of every kind as openvino_tokenizers writes them, with OpenVINO's results.

Run with transformers, tokenizers, sentencepiece, openvino and openvino_tokenizers installed:

    python -m tests.language.record [KIND ...]
"""

from __future__ import annotations

import json
import re
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
import openvino_tokenizers
import sentencepiece
import transformers
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

from tests.language.texts import MEGABYTE, TEXTS, digest

FILES = Path(__file__).parent / "files"
ROOT = Path(__file__).parents[2]
CORPUS = [path.read_text() for path in sorted([*ROOT.glob("*.md"), *ROOT.glob("onnx_specops/*.py")])]
CORPUS += ["今日は世界 你好，世界！ 这是测试。 안녕하세요 שלום עולם مرحبا بالعالم naïve café 👨‍👩‍👧‍👦 ❤️ ١٢٣ ½ ﬁ"] * 20
SIZE = 600

LLAMA_3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
QWEN = LLAMA_3.replace("{1,3}", "")


def fast(tokenizer: Tokenizer, **tokens: Any) -> Any:
    return transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=64, **tokens)


def byte_level(pattern: str | None, **settings: Any) -> Any:
    tokenizer = Tokenizer(models.BPE())
    if pattern is None:
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    else:
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
            [
                pre_tokenizers.Split(Regex(pattern), "isolated"),
                pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
            ]
        )
    if pattern == QWEN:
        tokenizer.normalizer = normalizers.NFC()
    tokenizer.decoder = decoders.ByteLevel()
    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    tokenizer.train_from_iterator(
        CORPUS, trainers.BpeTrainer(vocab_size=SIZE, special_tokens=special, initial_alphabet=alphabet)
    )
    if pattern == LLAMA_3:
        tokenizer.post_processor = processors.TemplateProcessing(
            single="<|im_start|> $A", pair="<|im_start|> $A <|im_start|> $B", special_tokens=[("<|im_start|>", 1)]
        )
    return fast(tokenizer, eos_token="<|endoftext|>", pad_token="<|endoftext|>", **settings)


def word_piece(lower: bool) -> Any:
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=lower)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokenizer.train_from_iterator(CORPUS, trainers.WordPieceTrainer(vocab_size=SIZE, special_tokens=special))
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS]:0 $A:0 [SEP]:0",
        pair="[CLS]:0 $A:0 [SEP]:0 $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    names = {"unk": "[UNK]", "pad": "[PAD]", "cls": "[CLS]", "sep": "[SEP]", "mask": "[MASK]"}
    return fast(tokenizer, **{f"{name}_token": token for name, token in names.items()})


def unigram() -> Any:
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.Sequence([normalizers.NFD(), normalizers.Replace(Regex(" {2,}"), " ")])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    tokenizer.train_from_iterator(
        CORPUS, trainers.UnigramTrainer(vocab_size=SIZE, special_tokens=special, unk_token="<unk>")
    )
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> </s> $B </s>", special_tokens=[("<s>", 0), ("</s>", 2)]
    )
    mask = AddedToken("<mask>", lstrip=True)
    return fast(tokenizer, bos_token="<s>", eos_token="</s>", unk_token="<unk>", pad_token="<pad>", mask_token=mask)


def byte_fallback(**settings: Any) -> Any:
    tokenizer = Tokenizer(models.BPE(byte_fallback=True, unk_token="<unk>", fuse_unk=True))
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    special = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
    trainer = trainers.BpeTrainer(vocab_size=SIZE, special_tokens=special, limit_alphabet=100)
    tokenizer.train_from_iterator([text[:3000] for text in CORPUS], trainer)
    state = json.loads(tokenizer.to_str())
    state["added_tokens"] = state["added_tokens"][:3]
    tokenizer = Tokenizer.from_str(json.dumps(state))
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A", pair="<s> $A <s> $B", special_tokens=[("<s>", 1)]
    )
    return fast(tokenizer, bos_token="<s>", eos_token="</s>", unk_token="<unk>", **settings)


def end_of_word() -> Any:
    tokenizer = Tokenizer(models.BPE(end_of_word_suffix="</w>", unk_token="<|endoftext|>"))
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.NFC(), normalizers.Replace(Regex(r"\s+"), " "), normalizers.Lowercase()]
    )
    pattern = Regex(r"'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+")
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Split(pattern, "removed", invert=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=SIZE,
        special_tokens=["<|startoftext|>", "<|endoftext|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        end_of_word_suffix="</w>",
    )
    tokenizer.train_from_iterator(CORPUS, trainer)
    tokenizer.post_processor = processors.RobertaProcessing(
        ("<|endoftext|>", 1), ("<|startoftext|>", 0), add_prefix_space=False, trim_offsets=False
    )
    end = "<|endoftext|>"
    return fast(tokenizer, bos_token="<|startoftext|>", eos_token=end, unk_token=end, pad_token=end)


def sentence_piece(kind: str, rules: str = "", **settings_of_tokenizer: Any) -> Any:
    """Return a SentencePiece tokenizer like Llama 2's and T5's; the latter may also split into words or characters.

    ``rules`` maps characters to their replacements, instead of NFKC.
    """
    with tempfile.TemporaryDirectory() as folder:
        corpus = Path(folder) / "corpus.txt"
        corpus.write_text("\n".join(line for text in CORPUS for line in text.splitlines() if line.strip()))
        is_llama = kind == "bpe"
        name = "tokenizer.model" if is_llama else "spiece.model"
        settings = (
            {"normalization_rule_name": "identity", "remove_extra_whitespaces": False, "byte_fallback": True}
            if is_llama
            else {"pad_id": 0, "eos_id": 1, "unk_id": 2, "bos_id": -1}
        )
        if kind in ("char", "word"):
            settings["hard_vocab_limit"] = False
        if rules:
            lines = ("\t".join(" ".join(f"{ord(c):X}" for c in part) for part in rule.split("=")) for rule in rules.split())
            (Path(folder) / "rules.tsv").write_text("\n".join(lines) + "\n")
            settings |= {"normalization_rule_tsv": f"{folder}/rules.tsv"}
        sentencepiece.SentencePieceTrainer.train(
            input=str(corpus), model_prefix=f"{folder}/m", vocab_size=SIZE, model_type=kind, character_coverage=0.995,
            minloglevel=2, **settings,
        )  # fmt: skip
        (Path(folder) / "m.model").rename(Path(folder) / name)
        if is_llama:
            return transformers.LlamaTokenizer.from_pretrained(folder, **settings_of_tokenizer)
        return transformers.T5Tokenizer.from_pretrained(folder, extra_ids=10, **settings_of_tokenizer)


def whole_sentence_piece(kind: str, **settings: Any) -> Any:
    """Return the same as an unmodified model file, which only the tokenizers of transformers 4 keep."""
    if not transformers.__version__.startswith("4."):
        raise RuntimeError("transformers 4 records the kinds that begin with spm: pip install 'transformers<5'")
    return sentence_piece(kind, RULES, **settings)


RULES = "Ａ=A ①=1 ﬁ=fi ½=1/2 \u0301= Å=A e\u0301=é ß=ss"
NO_UTF8 = [b"abc\xff\xfe def", b"\xc3", b"a\xe2\x82 b", b"\x80\x80x", b"\xed\xa0\x80", b"\xc0\xaf", b"\xf5\x80\x80\x80"]
SPM = {"use_sentencepiece_backend": True}
DEFINED_FOR_ANY_BYTES = ("qwen", "unigram", "sentencepiece_unigram", "spm_bpe", "spm_unigram", "spm_char", "spm_word")
"""Tokenizers whose character map replaces invalid UTF-8 before splitting; others may crash OpenVINO."""

LEFT = {"padding_side": "left", "truncation_side": "left"}
KINDS: dict[str, tuple[Callable[[], Any], dict[str, Any]]] = {
    "gpt2": (lambda: byte_level(None), {}),
    "llama3": (lambda: byte_level(LLAMA_3), {}),
    "llama3_left_to_maximum": (lambda: byte_level(LLAMA_3, **LEFT), {"use_max_padding": True}),
    "llama3_pair": (lambda: byte_level(LLAMA_3), {"number_of_inputs": 2, "with_detokenizer": False}),
    "qwen": (lambda: byte_level(QWEN), {}),
    "qwen_left": (lambda: byte_level(QWEN, **LEFT), {"with_detokenizer": False}),
    "end_of_word": (end_of_word, {}),
    "byte_fallback": (byte_fallback, {}),
    "byte_fallback_pair_left": (
        lambda: byte_fallback(**LEFT, pad_token="</s>"),
        {"number_of_inputs": 2, "with_detokenizer": False},
    ),
    "wordpiece": (lambda: word_piece(True), {}),
    "wordpiece_cased": (lambda: word_piece(False), {}),
    "wordpiece_pair": (lambda: word_piece(True), {"number_of_inputs": 2, "with_detokenizer": False}),
    "wordpiece_to_maximum": (lambda: word_piece(True), {"use_max_padding": True, "max_length": 48}),
    "unigram": (unigram, {}),
    "unigram_pair_to_maximum": (
        unigram,
        {"number_of_inputs": 2, "with_detokenizer": False, "use_max_padding": True, "max_length": 72},
    ),
    "sentencepiece_bpe": (lambda: sentence_piece("bpe"), {}),
    "sentencepiece_unigram": (lambda: sentence_piece("unigram"), {}),
    "spm_bpe": (lambda: whole_sentence_piece("bpe"), SPM),
    "spm_bpe_left": (lambda: whole_sentence_piece("bpe", padding_side="left"), SPM | {"streaming_detokenizer": True}),
    "spm_unigram": (lambda: whole_sentence_piece("unigram"), SPM | {"truncation": True, "max_length": 40}),
    "spm_char": (lambda: whole_sentence_piece("char"), SPM | {"handle_special_tokens_with_re": True}),
    "spm_word": (lambda: whole_sentence_piece("word"), SPM | {"skip_special_tokens": False}),
}


def record(kind: str) -> None:
    make, settings = KINDS[kind]
    tokenizer = make()
    converted = openvino_tokenizers.convert_tokenizer(tokenizer, **{"with_detokenizer": True, **settings})
    converted = converted if isinstance(converted, tuple) else (converted,)
    expected: dict[str, Any] = {}
    folder = FILES / kind
    folder.mkdir(parents=True, exist_ok=True)
    for name, model in zip(("tokenizer", "detokenizer"), converted, strict=False):
        path = folder / f"{name}.xml"
        ov.save_model(model, path)
        text = path.read_text()
        path.write_text(re.sub(r"^\t<rt_info>$.*(?=^</net>)", "", text, flags=re.DOTALL | re.MULTILINE))
        compiled = ov.Core().compile_model(path, "CPU")
        if name == "tokenizer" and kind in DEFINED_FOR_ANY_BYTES:
            expected["no utf-8"] = [[text.decode("latin-1"), compiled(np.array([text]))[0].tolist()] for text in NO_UTF8]
        expected[name] = (
            tokenized(compiled)
            if name == "tokenizer"
            else detokenized(compiled, len(tokenizer), SPM.keys() <= settings.keys())
        )
    (folder / "expected.json").write_text(json.dumps(expected, ensure_ascii=True, separators=(",", ":")) + "\n")


def tokenized(model: Any) -> dict[str, Any]:
    """Return the outputs by name for every case; ``None`` if OpenVINO fails."""
    results = {}
    for name, texts in {**TEXTS, "1 MB": [MEGABYTE]}.items():
        request = model.create_infer_request()
        if name == "truncated":
            for variable in request.query_state():
                variable.state = ov.Tensor(np.array(True))
        feeds = [ov.Tensor(np.array(texts)), ov.Tensor(np.array(texts[::-1]))][: len(model.inputs)]
        try:
            outputs = request.infer(feeds)
        except RuntimeError:
            results[name] = None
            continue
        arrays = {output.get_any_name(): outputs[output] for output in model.outputs}
        results[name] = {key: digest(a) if a.size > 1000 else a.tolist() for key, a in arrays.items()}
    return results


def detokenized(model: Any, size: int, is_whole: bool) -> list[Any]:
    """Return ids and their texts; complete SentencePiece models reject negative ids."""
    generator = np.random.default_rng(0)
    least = 0 if is_whole else -3
    cases = [
        np.arange(size)[:, None],
        generator.integers(0, size, (8, 40)),
        generator.integers(least, size + 5, (5, 7)),
        np.zeros((2, 0)),
        np.zeros((0, 3)),
    ]
    # NumPy's fixed-length strings lose trailing NULs.
    return [
        [case.astype(int).tolist(), [text.rstrip("\0") for text in model(case.astype(np.int64))[0].tolist()]]
        for case in cases
    ]


if __name__ == "__main__":
    for kind in sys.argv[1:] or KINDS:
        record(kind)
