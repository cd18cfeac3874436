"""The three string hashes of TensorFlow's ``tf.strings.to_hash_bucket*``, vectorised over strings of equal length.

========== ================================================== ===================================
hasher     function                                           TensorFlow
========== ================================================== ===================================
fasthash   FarmHash ``Fingerprint64``                         ``tf.strings.to_hash_bucket_fast``
legacy     a MurmurHash64A, seed ``0xDECAFCAFFE``             ``tf.strings.to_hash_bucket``
stronghash SipHash-2-4 under a 128-bit key of two words       ``tf.strings.to_hash_bucket_strong``
========== ================================================== ===================================

All of them hash bytes: text is hashed as its UTF-8 encoding. Sources: FarmHash (``farmhashna``), Austin Appleby's
MurmurHash2, and "SipHash: a fast short-input PRF" (Aumasson, Bernstein 2012).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

Hasher = Literal["fasthash", "legacy", "stronghash"]
HASHERS = get_args(Hasher)

Words = NDArray[np.uint64]
Bytes = NDArray[np.uint8]

_MASK = (1 << 64) - 1


def encode(texts: Iterable[object]) -> list[bytes]:
    """Return the bytes of each text. ``bytes`` are unchanged; ``str`` is encoded as UTF-8, where surrogate escapes become
    their byte.
    """
    return [bytes(t) if isinstance(t, bytes) else str(t).encode("utf-8", "surrogateescape") for t in texts]


def quoted(text: bytes) -> str:
    """Return ``text`` in quotes for a message: at most 60 bytes, with bytes outside printable ASCII as ``
    xNN``.
    """
    shown = "".join(
        f"\\{chr(byte)}" if byte in b'"\\' else chr(byte) if 0x20 <= byte < 0x7F else f"\\x{byte:02x}" for byte in text[:60]
    )
    return f'"{shown}..."' if len(text) > 60 else f'"{shown}"'


def hash_strings(texts: Sequence[bytes], hasher: str = "fasthash", key: tuple[int, int] = (0, 0)) -> Words:
    """Return the 64-bit hash of every text.

    Args:
        texts: byte strings.
        hasher: ``"fasthash"``, ``"legacy"`` or ``"stronghash"``.
        key: the two words of the key of ``"stronghash"``, signed or unsigned; other hashers ignore it.

    Returns:
        uint64 ``[len(texts)]``.

    Raises:
        ValueError: the hasher is unknown.
    """
    if hasher not in HASHERS:
        raise ValueError(f"hasher: {quoted(hasher.encode())} is unknown; known: {', '.join(HASHERS)}")
    hashes = np.empty(len(texts), np.uint64)
    lengths = np.fromiter(map(len, texts), np.int64, len(texts))
    for length in np.unique(lengths):
        rows = np.flatnonzero(lengths == length)
        joined = b"".join([texts[row] for row in rows.tolist()])
        matrix = np.frombuffer(joined, np.uint8).reshape(len(rows), int(length))
        with np.errstate(over="ignore"):
            if hasher == "fasthash":
                hashes[rows] = _fingerprint64(matrix)
            elif hasher == "legacy":
                hashes[rows] = _legacy_hash64(matrix)
            else:
                hashes[rows] = _siphash24(matrix, key)
    return hashes


def hash_buckets(
    texts: Sequence[bytes], num_buckets: int, hasher: str = "fasthash", key: tuple[int, int] = (0, 0)
) -> NDArray[np.int64]:
    """Return ``hash_strings`` modulo ``num_buckets`` (>= 1), as int64 ``[len(texts)]``."""
    return (hash_strings(texts, hasher, key) % np.uint64(num_buckets)).astype(np.int64)


def fingerprint64(text: bytes) -> int:
    """Return the FarmHash ``Fingerprint64`` of ``text``."""
    return int(hash_strings([text])[0])


def legacy_hash64(text: bytes) -> int:
    """Return TensorFlow's ``Hash64`` of ``text``, which ``tf.strings.to_hash_bucket`` uses."""
    return int(hash_strings([text], "legacy")[0])


def siphash24(text: bytes, key: tuple[int, int]) -> int:
    """Return the SipHash-2-4 of ``text`` with the key of two 64-bit words."""
    return int(hash_strings([text], "stronghash", key)[0])


def _word(matrix: Bytes, at: int, size: int = 8) -> Words:
    """Return the little-endian word of ``size`` bytes at column ``at`` of every row."""
    padded = np.zeros((len(matrix), 8), np.uint8)
    padded[:, :size] = matrix[:, at : at + size]
    return padded.view("<u8")[:, 0].astype(np.uint64, copy=False)


def _right(word: Words, shift: int) -> Words:
    """Rotate ``word`` right."""
    return (word >> np.uint64(shift)) | (word << np.uint64(64 - shift))


# FarmHash's three multipliers.
_K0, _K1, _K2 = np.uint64(0xC3A5C85C97CB3127), np.uint64(0xB492B66FBE98F273), np.uint64(0x9AE16A3B2F90404F)


def _fold(word: Words) -> Words:
    return word ^ (word >> np.uint64(47))


def _merge(low: Words, high: Words, multiplier: Words | np.uint64) -> Words:
    """Combine two words into one."""
    return _fold((_fold((low ^ high) * multiplier) ^ high) * multiplier) * multiplier


def _fingerprint64(matrix: Bytes) -> Words:
    count, length = matrix.shape
    multiplier = _K2 + np.uint64(2 * length)

    def word(at: int) -> Words:
        return _word(matrix, at if at >= 0 else length + at)

    if length == 0:
        return np.full(count, _K2)
    if length < 4:
        first, middle, last = (matrix[:, at].astype(np.uint64) for at in (0, length >> 1, length - 1))
        head = first + (middle << np.uint64(8))
        tail = np.uint64(length) + (last << np.uint64(2))
        return _fold(head * _K2 ^ tail * _K0) * _K2
    if length < 8:
        head, tail = _word(matrix, 0, 4), _word(matrix, length - 4, 4)
        return _merge(np.uint64(length) + (head << np.uint64(3)), tail, multiplier)
    if length <= 16:
        head, tail = word(0) + _K2, word(-8)
        return _merge(_right(tail, 37) * multiplier + head, (_right(head, 25) + tail) * multiplier, multiplier)
    if length <= 32:
        a, b = word(0) * _K1, word(8)
        c, d = word(-8) * multiplier, word(-16) * _K2
        return _merge(_right(a + b, 43) + _right(c, 30) + d, a + _right(b + _K2, 18) + c, multiplier)
    if length <= 64:
        a, b = word(0) * _K2, word(8)
        c, d = word(-8) * multiplier, word(-16) * _K2
        low = _right(a + b, 43) + _right(c, 30) + d
        high = _merge(low, a + _right(b + _K2, 18) + c, multiplier)
        e, f = word(16) * multiplier, word(24)
        g, h = (low + word(-32)) * multiplier, (high + word(-24)) * multiplier
        return _merge(_right(e + f, 43) + _right(g, 30) + h, e + _right(f + a, 18) + g, multiplier)
    return _long_fingerprint64(word, count, length)


def _long_fingerprint64(word: Callable[[int], Words], count: int, length: int) -> Words:
    """Hash texts of more than 64 bytes: a state of seven words, 64 bytes per round, then the last 64 bytes."""
    seed = np.uint64(81)
    x = np.full(count, seed * _K2) + word(0)
    y = np.full(count, seed * _K1 + np.uint64(113))
    z = _fold(y * _K2 + np.uint64(113)) * _K2
    v = w = (np.zeros(count, np.uint64), np.zeros(count, np.uint64))

    def absorb(at: int, low: Words, high: Words) -> tuple[Words, Words]:
        """Absorb 32 bytes into a pair of words."""
        low = low + word(at)
        total = low + word(at + 8) + word(at + 16)
        high = _right(high + low + word(at + 24), 21) + _right(total, 44)
        return total + word(at + 24), high + low

    for at in range(0, (length - 1) // 64 * 64, 64):
        x = _right(x + y + v[0] + word(at + 8), 37) * _K1 ^ w[1]
        y = _right(y + v[1] + word(at + 48), 42) * _K1 + v[0] + word(at + 40)
        z = _right(z + w[0], 33) * _K1
        v = absorb(at, v[1] * _K1, x + w[0])
        w = absorb(at + 32, z + w[1], y + word(at + 16))
        z, x = x, z
    multiplier = _K1 + ((z & np.uint64(0xFF)) << np.uint64(1))
    at = length - 64
    w = (w[0] + np.uint64((length - 1) & 63), w[1])
    v = (v[0] + w[0], v[1])
    w = (w[0] + v[0], w[1])
    x = _right(x + y + v[0] + word(at + 8), 37) * multiplier ^ w[1] * np.uint64(9)
    y = _right(y + v[1] + word(at + 48), 42) * multiplier + v[0] * np.uint64(9) + word(at + 40)
    z = _right(z + w[0], 33) * multiplier
    v = absorb(at, v[1] * multiplier, x + w[0])
    w = absorb(at + 32, z + w[1], y + word(at + 16))
    return _merge(_merge(v[0], w[0], multiplier) + _fold(y) * _K0 + x, _merge(v[1], w[1], multiplier) + z, multiplier)


def _legacy_hash64(matrix: Bytes) -> Words:
    count, length = matrix.shape
    multiplier, shift = np.uint64(0xC6A4A7935BD1E995), np.uint64(47)
    state = np.full(count, np.uint64(0xDECAFCAFFE) ^ np.uint64(length) * multiplier)
    whole = length // 8 * 8
    for at in range(0, whole, 8):
        word = _word(matrix, at) * multiplier
        state = (state ^ (word ^ (word >> shift)) * multiplier) * multiplier
    if length > whole:
        state = (state ^ _word(matrix, whole, length - whole)) * multiplier
    state = (state ^ (state >> shift)) * multiplier
    return state ^ (state >> shift)


def _siphash24(matrix: Bytes, key: tuple[int, int]) -> Words:
    count, length = matrix.shape
    low, high = np.uint64(key[0] & _MASK), np.uint64(key[1] & _MASK)
    # The initial state spells "somepseudorandomlygeneratedbytes".
    a = np.full(count, low ^ np.uint64(0x736F6D6570736575))
    b = np.full(count, high ^ np.uint64(0x646F72616E646F6D))
    c = np.full(count, low ^ np.uint64(0x6C7967656E657261))
    d = np.full(count, high ^ np.uint64(0x7465646279746573))

    def rounds(times: int) -> None:
        nonlocal a, b, c, d
        for _ in range(times):
            a, c = a + b, c + d
            b, d = _right(b, 51) ^ a, _right(d, 48) ^ c
            a = _right(a, 32)
            c, a = c + b, a + d
            b, d = _right(b, 47) ^ c, _right(d, 43) ^ a
            c = _right(c, 32)

    whole = length // 8 * 8
    last = _word(matrix, whole, length - whole) | np.uint64((length & 0xFF) << 56)
    for word in (*(_word(matrix, at) for at in range(0, whole, 8)), last):
        d = d ^ word
        rounds(2)
        a = a ^ word
    c = c ^ np.uint64(0xFF)
    rounds(4)
    return a ^ b ^ c ^ d
