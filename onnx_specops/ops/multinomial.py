"""Multinomial: samples classes from rows of probabilities, with OpenVINO's random numbers."""

from __future__ import annotations

import functools
import time

import numpy as np
from onnx import TensorProto as Type

from onnx_specops.assertions import required
from onnx_specops.domain import FLOATS, INDICES, operator

_TINY = np.finfo(np.float32).tiny


@operator(
    inputs={"probs": "T", "num_samples": "T_SAMPLES"},
    outputs={"output": "tensor(int64)"},
    types={"T": FLOATS, "T_SAMPLES": INDICES},
    random_body=True,
)
def Multinomial(probs, num_samples, *, with_replacement: int, log_probs: int = 0, global_seed: int = 0, op_seed: int = 0):
    """Samples ``num_samples`` classes from each row of probabilities, like OpenVINO's CPU plugin.

    Inputs:
        probs: ``[batch, classes]``, finite and not negative, with a positive sum in each row. They are normalized. With
            ``log_probs``, the input contains their logarithms, whose exponentials must be finite in float32.
        num_samples: scalar or ``[1]``, not negative.

    Attributes:
        with_replacement: whether a class can be sampled more than once for a row. If not, ``num_samples`` must not exceed
            the number of classes of nonzero probability.
        log_probs: whether ``probs`` are logarithms.
        global_seed, op_seed: unsigned 64-bit seeds in two's complement. The generator uses the low 32 bits of each. If
            either is nonzero, every run samples the same classes. If both are 0, the current time in seconds replaces
            ``global_seed``.

    Output: ``[batch, num_samples]``, the classes in the order of sampling.

    For each sample, in row-major order, the generator (``std::mt19937`` seeded by ``std::seed_seq{global_seed, op_seed}``)
    produces one 32-bit number, which is divided by 2**32. The sample is the first class whose cumulative probability in
    float32 (bfloat16 for bfloat16 ``probs``) reaches it. Without replacement, the probability of the class is then
    subtracted from the cumulative probabilities in the same arithmetic. In rare cases (more often in bfloat16), rounding
    leaves enough probability to sample the class again. If no class reaches the number, OpenVINO's result is undefined. This
    operator selects the most probable class that has not been sampled yet.

    The NumPy kernel computes exponentials in float64 and rounds them to float32: 6 in 10,000 differ in the last bit from
    those of the C library, which OpenVINO and the native kernel use. The body samples from the same distribution with ONNX's
    random generators, whose sequence differs. Each call continues the sequence.

    Source: OpenVINO specification, Multinomial-13; the generator as in OpenVINO's CPU plugin.
    """
    name = "Multinomial"
    if probs.ndim != 2:
        raise ValueError(f"{name}: probs has the shape {list(probs.shape)} instead of [batch, classes]")
    if np.size(num_samples) != 1:
        raise ValueError(f"{name}: num_samples has {np.size(num_samples)} elements instead of one")
    samples = int(np.reshape(num_samples, -1)[0])
    if samples < 0:
        raise ValueError(f"{name}: num_samples = {samples} is negative")
    batch, classes = probs.shape
    if not with_replacement and samples > classes:
        raise ValueError(f"{name}: num_samples = {samples} is more than the {classes} classes, without replacement")
    _check(name, probs, bool(log_probs))

    rounded = _to_bfloat16 if probs.dtype.name == "bfloat16" else _as_is
    weights = probs.astype(np.float32)
    if log_probs:
        with np.errstate(over="ignore", under="ignore"):
            weights = np.exp(weights.astype(np.float64)).astype(np.float32)
    cumulative = _cumulative(weights, rounded)
    totals = cumulative[:, -1:] if classes else np.zeros((batch, 1), np.float32)
    if (bad := np.flatnonzero(~np.isfinite(totals))).size:
        raise ValueError(f"{name}: probs: row {bad[0]} sums to inf; it must be finite")
    if (bad := np.flatnonzero(totals < _TINY)).size:
        raise ValueError(f"{name}: probs: row {bad[0]} sums to 0; it must be positive")
    cumulative = rounded(cumulative / totals)

    draws = _random_words(global_seed, op_seed, batch * samples).astype(np.float32) / np.float32(2**32)
    draws = rounded(draws).reshape(batch, samples)
    if with_replacement:
        return np.array([np.searchsorted(*row) for row in zip(cumulative, draws, strict=True)], np.int64).reshape(
            batch, samples
        )
    if (bad := np.flatnonzero((possible := np.count_nonzero(weights, axis=1)) < samples)).size:
        raise ValueError(
            f"{name}: num_samples = {samples} is more than the {possible[bad[0]]} classes of nonzero probability "
            f"in row {bad[0]}, without replacement"
        )
    return _without_replacement(weights, cumulative, draws, rounded)


def _check(name, probs, log_probs):
    values = probs.astype(np.float32, copy=False)
    wrong = np.isnan(values) | (values == np.inf)
    if not log_probs:
        wrong |= values < 0
    if wrong.any():
        row, column = np.unravel_index(int(wrong.argmax()), wrong.shape)
        value = values[row, column]
        what = "a NaN" if np.isnan(value) else "inf" if value == np.inf else f"a negative probability, {probs[row, column]},"
        raise ValueError(f"{name}: probs: row {row} contains {what} at class {column}")


def _as_is(values):
    return values


def _to_bfloat16(values):
    """Round float32 to bfloat16 like OpenVINO, which adds one half only if the lowest remaining bit is 1."""
    bits = values.view(np.uint32)
    return ((bits + ((bits & 0x10000) >> 1)) & 0xFFFF0000).view(np.float32)


def _cumulative(weights, rounded):
    if rounded is _as_is:
        with np.errstate(over="ignore"):
            return np.cumsum(weights, axis=1, dtype=np.float32)
    cumulative = np.empty_like(weights)
    total = np.zeros(len(weights), np.float32)
    for column in range(weights.shape[1]):
        total = cumulative[:, column] = rounded(total + weights[:, column])
    return cumulative


def _without_replacement(weights, cumulative, draws, rounded):
    batch, classes = weights.shape
    rows, columns = np.arange(batch), np.arange(classes)
    output = np.empty(draws.shape, np.int64)
    left = weights.copy()
    for sample in range(draws.shape[1]):
        reached = draws[:, sample, None] <= cumulative
        selected = np.where(reached.any(axis=1), reached.argmax(axis=1), left.argmax(axis=1))
        output[:, sample] = selected
        left[rows, selected] = -1
        with np.errstate(all="ignore"):
            before = np.where(selected > 0, cumulative[rows, selected - 1], np.float32(0))
            probability = rounded(cumulative[rows, selected] - before)[:, None]
            remainder = rounded(np.float32(1) - probability)
            taken = np.where(columns >= selected[:, None], rounded(cumulative - probability), cumulative)
            cumulative = rounded(taken / remainder)
    return output


def _random_words(global_seed, op_seed, count):
    """Return the first ``count`` 32-bit numbers of the generator."""
    if global_seed == 0 and op_seed == 0:
        global_seed = int(time.time())
    generator = np.random.MT19937()
    key = _seed_sequence(global_seed & 0xFFFFFFFF, op_seed & 0xFFFFFFFF)
    generator.state = {"bit_generator": "MT19937", "state": {"key": key, "pos": 624}}
    return generator.random_raw(count)


@functools.lru_cache(maxsize=64)
def _seed_sequence(*words):
    """Return the 624 words of state that C++'s ``std::seed_seq{words...}.generate`` produces ([rand.util.seedseq])."""
    size, mask = 624, 0xFFFFFFFF
    state = [0x8B8B8B8B] * size
    p = (size - 11) // 2
    q = p + 11
    for k in range(size):
        mixed = state[k] ^ state[(k + p) % size] ^ state[k - 1]
        first = 1664525 * (mixed ^ (mixed >> 27)) & mask
        second = first + (len(words) if k == 0 else k + words[k - 1] if k <= len(words) else k) & mask
        state[(k + p) % size] = state[(k + p) % size] + first & mask
        state[(k + q) % size] = state[(k + q) % size] + second & mask
        state[k] = second
    for k in range(size):
        mixed = state[k] + state[(k + p) % size] + state[k - 1] & mask
        first = 1566083941 * (mixed ^ (mixed >> 27)) & mask
        second = first - k & mask
        state[(k + p) % size] ^= first
        state[(k + q) % size] ^= second
        state[k] = second
    return np.array(state, np.uint32)


@Multinomial.infer_shapes
def _(node):
    probs, samples = node.shape(0), node.constant(1)
    return [[probs[0] if probs else None, None if samples is None else int(samples.reshape(-1)[0])]]


@Multinomial.body
def _(op, probs, num_samples, *, with_replacement, log_probs, global_seed, op_seed):
    # Any integer that float32 represents is suitable. Equal seeds give equal samples.
    seed = 1.0 + (global_seed * 1_000_003 + op_seed) % (2**24 - 1) if global_seed or op_seed else None

    def uniform(shape):  # in the open interval (0, 1)
        zeros = op.ConstantOfShape(shape, value=np.zeros(1))
        return op.RandomUniformLike(zeros, dtype=Type.DOUBLE, low=2.0**-53, high=1 - 2.0**-24, seed=seed)

    batch, classes = op.Shape(probs, start=0, end=1), op.Shape(probs, start=1)
    samples = op.Reshape(op.Cast(num_samples, to=Type.INT64), [1])
    samples = required(op, "num_samples_is_negative", op.Less(samples, 0), samples)

    weights = op.Cast(probs, to=Type.FLOAT)
    if log_probs:
        weights = op.Exp(weights)
    wrong = op.Or(op.Not(op.GreaterOrEqual(weights, 0)), op.IsInf(weights))
    samples = required(op, "probs_are_negative_nan_or_infinite", wrong, samples)
    total = op.ReduceSum(weights, [1], keepdims=0)
    wrong = op.Or(op.Less(total, _TINY), op.IsInf(total))
    samples = required(op, "probs_sum_to_zero_or_infinity", wrong, samples)
    weights = op.Cast(weights, to=Type.DOUBLE)

    if not with_replacement:
        possible = op.ReduceSum(op.Cast(op.Greater(weights, 0), to=Type.INT64), [1], keepdims=0)
        fewer = op.Less(op.Concat(possible, classes, axis=0), samples)
        samples = required(op, "more_samples_than_classes_of_nonzero_probability", fewer, samples)
        # Each class has an exponentially distributed arrival time. The order of arrival is a sample without replacement.
        arrival = op.Div(op.Neg(op.Log(uniform(op.Shape(weights)))), op.Max(weights, 1e-300))
        return op.TopK(arrival, samples, axis=1, largest=0)[1]

    cumulative = op.CumSum(weights, 1)
    last = op.Slice(cumulative, [-1], [2**31], [1])
    draws = op.Mul(uniform(op.Concat(batch, samples, axis=0)), last)

    # A sample selects the number of classes with a lower cumulative probability.
    def compared(op):
        lower = op.Less(op.Unsqueeze(cumulative, [1]), op.Unsqueeze(draws, [2]))
        return op.Cast(op.ReduceSum(op.Cast(lower, to=Type.INT32), [2], keepdims=0), to=Type.INT64)

    def sorted_together(op):  # counts the elements before it
        order = op.TopK(op.Concat(draws, cumulative, axis=1), op.Add(samples, classes), axis=1, largest=0)[1]
        lower = op.CumSum(op.Cast(op.GreaterOrEqual(order, samples), to=Type.INT64), 1)
        return op.Slice(op.ScatterElements(order, order, lower, axis=1), [0], samples, [1])

    few = op.Squeeze(op.Less(samples, 16), [0])
    return op.if_(few, compared, sorted_together)
