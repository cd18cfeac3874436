"""Streams of random 32-bit numbers, in NumPy and in standard ONNX: Philox 4x32-10 and the Mersenne Twister MT19937.

Philox: Salmon et al., Parallel Random Numbers: As Easy as 1, 2, 3. MT19937: Matsumoto and Nishimura.
"""

from __future__ import annotations

import numpy as np
from onnx import TensorProto as Type

_MULTIPLIERS = 0xD2511F53, 0xCD9E8D57
_KEY_STEPS = 0x9E3779B9, 0xBB67AE85
_ROUNDS = 10
_LOW = 0xFFFFFFFF

_STATE, _MIDDLE = 624, 397
_TWIST = 0x9908B0DF
_TEMPERING = ((11, _LOW), (-7, 0x9D2C5680), (-15, 0xEFC60000), (18, _LOW))


def philox(key: int, counter: int, count: int) -> np.ndarray:
    """Return ``count`` numbers (uint32) of the 64-bit ``key`` and the 128-bit counters (0, ``counter``), (1, ``counter``),
    ...
    """
    blocks = np.arange(-(-count // 4), dtype=np.uint64)
    low, half = np.uint64(_LOW), np.uint64(32)
    first, second = blocks & low, blocks >> half
    third, fourth = (np.full_like(blocks, part) for part in (counter & _LOW, counter >> 32))
    keys = [key & _LOW, key >> 32]
    for _ in range(_ROUNDS):
        a, b = first * np.uint64(_MULTIPLIERS[0]), third * np.uint64(_MULTIPLIERS[1])
        first, second = (b >> half) ^ second ^ np.uint64(keys[0]), b & low
        third, fourth = (a >> half) ^ fourth ^ np.uint64(keys[1]), a & low
        keys = [(k + step) & _LOW for k, step in zip(keys, _KEY_STEPS, strict=True)]
    return np.stack([first, second, third, fourth], 1).astype(np.uint32).reshape(-1)[:count]


def mersenne_twister(seed: int, count: int) -> np.ndarray:
    """Return ``count`` numbers (uint32) of the generator with the low 32 bits of ``seed`` as its seed."""
    generator = np.random.RandomState()
    generator.set_state(("MT19937", _initial_state(seed), _STATE, 0, 0.0))
    return np.frombuffer(generator.bytes(4 * count), "<u4").astype(np.uint32)


def _initial_state(seed: int) -> np.ndarray:
    state = [seed & _LOW]
    for i in range(1, _STATE):
        state.append((1812433253 * (state[-1] ^ (state[-1] >> 30)) + i) & _LOW)
    return np.array(state, np.uint32)


def emit_philox(op, keys, counter, count):
    """Emit the numbers of `philox` as uint64.

    Args:
        op: the graph builder.
        keys: the low and the high half of the key, Python numbers or uint64 scalars.
        counter: a Python number.
        count: int64 ``[1]``.
    """
    blocks = op.Range(0, op.Squeeze(op.Div(op.Add(count, 3), 4), [0]), 1)
    low, half = _uint64(op, _LOW), _uint64(op, 32)
    blocks = op.Cast(blocks, to=Type.UINT64)
    zero = op.BitwiseXor(blocks, blocks)
    parts = [blocks, zero, *(op.BitwiseOr(zero, _uint64(op, part)) for part in (counter & _LOW, counter >> 32))]
    keys = [_uint64(op, key) if isinstance(key, int) else key for key in keys]

    def round_(op, _step, _condition, first, second, third, fourth, low_key, high_key):
        a, b = op.Mul(first, _uint64(op, _MULTIPLIERS[0])), op.Mul(third, _uint64(op, _MULTIPLIERS[1]))

        def mixed(product, part, key):
            high = op.BitShift(product, half, direction="RIGHT")
            return op.BitwiseXor(op.BitwiseXor(high, part), key)

        steps = [
            op.BitwiseAnd(op.Add(key, _uint64(op, step)), low)
            for key, step in zip((low_key, high_key), _KEY_STEPS, strict=True)
        ]
        lows = [op.BitwiseAnd(product, low) for product in (b, a)]
        return op.const(True), mixed(b, second, low_key), lows[0], mixed(a, fourth, high_key), lows[1], *steps

    results = op.loop(_ROUNDS, True, round_, *parts, *keys)[:4]
    stacked = op.Concat(*(op.Unsqueeze(part, [1]) for part in results), axis=1)
    return op.Slice(op.Reshape(stacked, [-1]), [0], count)


def emit_mersenne_twister(op, seed, count):
    """Emit the numbers of `mersenne_twister` as uint64; ``seed`` is a Python number, ``count`` int64 ``[1]``."""
    blocks = op.Squeeze(op.Div(op.Add(count, _STATE - 1), _STATE), [0])

    def shifted(op, x, bits):
        return op.BitShift(x, _uint32(op, abs(bits)), direction="RIGHT" if bits > 0 else "LEFT")

    def twisted(op, x, next_):
        mixed = op.BitwiseOr(op.BitwiseAnd(x, _uint32(op, 0x80000000)), op.BitwiseAnd(next_, _uint32(op, 0x7FFFFFFF)))
        odd = op.Cast(op.BitwiseAnd(next_, _uint32(op, 1)), to=Type.BOOL)
        return op.BitwiseXor(shifted(op, mixed, 1), op.Where(odd, _uint32(op, _TWIST), _uint32(op, 0)))

    def block(op, _step, _condition, state):
        def part(x, start, end):
            return op.Slice(x, [start], [end])

        # Each part of the new state depends on the previous part.
        size, last = _STATE - _MIDDLE, _STATE - 1
        first = op.BitwiseXor(part(state, _MIDDLE, _STATE), twisted(op, part(state, 0, size), part(state, 1, size + 1)))
        second = op.BitwiseXor(first, twisted(op, part(state, size, 2 * size), part(state, size + 1, 2 * size + 1)))
        third = op.BitwiseXor(
            part(second, 0, last - 2 * size),
            twisted(op, part(state, 2 * size, last), part(state, 2 * size + 1, _STATE)),
        )
        final = op.BitwiseXor(
            part(second, _MIDDLE - 1 - size, _MIDDLE - size), twisted(op, part(state, last, _STATE), part(first, 0, 1))
        )
        state = numbers = op.Concat(first, second, third, final, axis=0)
        for bits, mask in _TEMPERING:
            numbers = op.BitwiseXor(numbers, op.BitwiseAnd(shifted(op, numbers, bits), _uint32(op, mask)))
        return op.const(True), state, numbers

    _, numbers = op.loop(blocks, True, block, op.const(_initial_state(seed)))
    return op.Cast(op.Slice(op.Reshape(numbers, [-1]), [0], count), to=Type.UINT64)


def _uint64(op, x):
    return op.const(np.uint64(x))


def _uint32(op, x):
    return op.const(np.uint32(x))
