"""Texts for tokenizers, with the corner cases of each of their steps."""

from __future__ import annotations

import hashlib

LONG = "The quick brown fox, 3.14 times as quick as 你好, jumps over l'été — encore!\n\tdef f(x): return x ** 2  # naïve\n"

TEXTS: dict[str, list[str]] = {
    "plain": ["Hello world, this is a test of 123 tokens!", "def f(x):\n    return x + 1\n"],
    "one": ["a"],
    "empty": [""],
    "all empty": ["", "", ""],
    "some empty": ["", "abc", ""],
    "special tokens": [
        "<|endoftext|>Hello<|endoftext|> world<|im_start|>",
        "[CLS] x [SEP] <s> a</s> <mask>b <unk>",
        " <s><s> [MASK]  <mask> ",
    ],
    "emoji": ["family 👨‍👩‍👧‍👦 flag 🇺🇸 heart ❤️ thumbs 👍🏽", "🙂" * 10],
    "right to left": ["שלום עולם", "مرحبا بالعالم، كيف حالك؟ ١٢٣"],
    "cjk": ["今日は世界", "你好，世界！这是测试。", "안녕하세요 세계", "日本語テキスト123abc"],
    "control characters": [
        "a\tb\nc\r\nd\x0b\x0ce\x01\x02\x1f\x7f\x85\xa0\u2028\u200b\u180e\ufeff",
        "\n\n\n  \t ",
        "  lead",
        "trail  ",
        " \u3000x\u3000 ",
    ],
    "marks": ["naïve café résumé Ünïcödé ﬁ ﬀ ① ½ Å Å Ａｂｃ", "e\u0301a\u0308\u0323\u0323\u0308", "ß İı ſ ǅ ΑΣ Σς ÀÉ"],
    "contractions": ["I'll can't WE'VE it'S he'D they're I'M 'ſ don’t K'K"],
    "digits": ["1234567 12,345.678 ٣٤٥ ⅷ ² 1a2b"],
    "U+2581": ["▁a▁▁b", "▁", "▁▁", "a▁", " ▁ "],
    "long words": ["x" * 300 + " " + "ab" * 200 + " " + "supercalifragilisticexpialidocious" * 5],
    "punctuation": ["...!!!???---___***(((a)))[b]{c}<d>#$%^&*@~`|\\/"],
    "NUL": ["a\0b"],
    "batch": [LONG[:length] for length in range(0, len(LONG), 7)],
    "truncated": [f"word number {i} and all the rest " * 20 for i in range(3)] + ["short", ""],
}
"""By name; texts called truncated are tokenized with truncation."""

MEGABYTE = (LONG * (1 + 1_000_000 // len(LONG.encode()))).encode()[:1_000_000].decode(errors="ignore")


def digest(ids: object) -> str:
    """Return a fingerprint of an array of ids."""
    import numpy as np

    array = np.ascontiguousarray(ids, "<i8")
    return f"{list(array.shape)} {hashlib.sha256(array.tobytes()).hexdigest()}"
