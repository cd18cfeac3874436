"""If, Loop, TensorIterator."""

from __future__ import annotations

from functools import partial

import numpy as np

from tests.conformance.operation_models import dynamic, layer_case, ramp, static, unranked

F = np.float32
TRUE, FALSE = np.array(True), np.array(False)


def body(ops, parameters, *results, sinks=()):
    """The graph of a body."""
    import openvino as ov

    return ov.Model([ops.result(result) for result in results], list(sinks), list(parameters))


def either(ops, condition, inputs, then_body, else_body):
    """Return the outputs of an If; ``inputs`` feed the Parameters with the same index in both bodies."""
    node = ops.if_op(condition.output(0))
    node.set_then_body(then_body)
    node.set_else_body(else_body)
    for index, value in enumerate(inputs):
        own = [found.get_parameters()[index : index + 1] or [None] for found in (then_body, else_body)]
        node.set_input(value.output(0), own[0][0], own[1][0])
    return [node.set_output(*results) for results in zip(then_body.get_results(), else_body.get_results(), strict=True)]


def loop_node(ops, trips, go, inner, counter=-1, condition=1):
    """Return a Loop over the body; ``counter`` and ``condition`` are the indices of its special Parameter and Result."""
    node = ops.loop(trips.output(0), go.output(0))
    node.set_function(inner)
    node.set_special_body_ports([counter, condition])
    return node


def always(ops):
    return ops.constant(np.bool_(True))


def _last(node, inner, index=0):
    return node.get_iter_value(inner.get_results()[index].output(0), -1)


def _joined(node, inner, index=0, how=(0, 1, 1, -1), axis=0):
    return node.get_concatenated_slices(inner.get_results()[index].output(0), *how, axis)


# -- If -------------------------------------------------------------------------------------------------------------------

A, B = ramp(2, 3), -ramp(2, 3) * 2
if_case = partial(layer_case, "If", "opset8")


def _if(nested=False, outputs=1, unlike=False):
    """``unlike``: the branches' shapes differ."""

    def make(ops, condition, x, y):
        def parameters():
            return [ops.parameter(value.get_partial_shape(), F) for value in (x, y)]

        def first():
            a, b = parameters()
            if unlike:
                return body(ops, [a, b], ops.relu(a))
            if not nested:
                return body(ops, [a, b], *[ops.add(a, b), ops.subtract(a, b)][:outputs])
            test = ops.greater(ops.reduce_sum(a, ops.constant([0, 1])), ops.constant(F(10)))
            then, other = parameters(), parameters()
            chosen = either(ops, test, (a, b), body(ops, then, then[0]), body(ops, other, other[1]))
            return body(ops, [a, b], *chosen)

        def second():
            a, b = parameters()
            return body(ops, [a, b], *[ops.multiply(b, ops.constant(F(2))), ops.relu(b)][:outputs])

        return either(ops, condition, (x, y), first(), second())

    return make


def _conditional(*flags, x=A, y=B):
    """Return the inputs of an If: one flag per run."""
    runs = len(flags)
    return [static(*flags), static(*[x] * runs), static(*[y] * runs)]


def _scalar_or_vector(ops, flag, x):
    """One branch returns a scalar, the other a vector: then both are vectors."""
    bodies = []
    for emit in (lambda a: ops.reduce_sum(a, ops.constant([0])), ops.relu):
        a = ops.parameter([-1], F)
        bodies.append(body(ops, [a], emit(a)))
    return either(ops, flag, [x], *bodies)


def _ifs():
    yield if_case(_if(), "both", _conditional(TRUE, FALSE))
    yield if_case(_if(), "constant-condition", [np.bool_(True), static(A), static(B)])
    inputs = [static(TRUE, TRUE, FALSE), static(A, A * 0, A), static(B, B, B)]
    yield if_case(_if(nested=True), "nested", inputs)
    yield if_case(_if(outputs=2), "two-outputs", _conditional(TRUE, FALSE))
    yield if_case(_if(), "integer-condition", _conditional(*np.array([0, 1, 2, 256, -1], np.int32)))
    x, y = ramp(4, 3), ramp(2, 5)
    inputs = [static(TRUE, FALSE)]
    inputs += [dynamic(x, x, dims=(-1, 3)), dynamic(y, y, dims=(2, -1))]
    yield if_case(_if(unlike=True), "branches-of-other-shapes", inputs)
    inputs = [static(TRUE, FALSE, TRUE), dynamic(ramp(3), ramp(3), ramp(1))]
    yield if_case(_scalar_or_vector, "scalar-and-vector", inputs)


# -- TensorIterator --------------------------------------------------------------------------------------------------------

iterator_case = partial(layer_case, "TensorIterator", "opset1", opset="opset8")


def _iterator(axis=1, stride=1, start=0, end=-1, part=1, join_stride=None, swap=False):
    """Accumulates slices of ``x`` times an invariant; returns the concatenated partial sums and the last one."""

    def make(ops, x, factor, state):
        shape = state.get_partial_shape()
        piece, scale, total = (ops.parameter(s, F) for s in (shape, factor.get_partial_shape(), shape))
        following = ops.add(total, ops.multiply(piece, scale))
        inner = body(ops, [piece, scale, total], following, ops.relu(following))
        node = ops.tensor_iterator()
        node.set_body(inner)
        node.set_sliced_input(piece, x.output(0), start, stride, part, end, axis)
        node.set_invariant_input(scale, factor.output(0))
        node.set_merged_input(total, state.output(0), inner.get_results()[0].output(0))
        step = stride if join_stride is None else join_stride
        begin, finish = (0, -1) if step > 0 else (-1, 0)
        outputs = [_joined(node, inner, 1, (begin, step, part, finish), axis), _last(node, inner), _last(node, inner, 1)]
        return outputs[::-1] if swap else outputs

    return make


def _iterated(*sizes, axis=1, part=1):
    """Return the inputs of an iterator over ``axis``, whose length is unknown if there are several."""
    shapes = [[size if i == axis else d for i, d in enumerate((2, 6, 3))] for size in sizes]
    dims = [-1 if i == axis and len(sizes) > 1 else d for i, d in enumerate(shapes[0])]
    factor = np.array([1, -1, 2], F) if axis != 2 else np.array([2], F)
    state = np.ones([part if i == axis else d for i, d in enumerate(shapes[0])], F)
    return [
        dynamic(*(ramp(*shape) - 9 for shape in shapes), dims=dims),
        static(*[factor] * len(sizes)),
        static(*[state] * len(sizes)),
    ]


def _slices(start, end, stride, part=1, axis=1, joined=None):
    """Ten times the sum so far plus the slice, and the concatenated slices if ``joined`` is given."""

    def make(ops, x):
        shape = [part if i == axis else 2 for i in range(3)]
        piece, total = ops.parameter(shape, F), ops.parameter(shape, F)
        following = ops.add(ops.multiply(total, ops.constant(F(10))), piece)
        inner = body(ops, [piece, total], ops.multiply(piece, ops.constant(F(2))), following)
        node = ops.tensor_iterator()
        node.set_body(inner)
        node.set_sliced_input(piece, x.output(0), start, stride, part, end, axis)
        zero = ops.constant(np.zeros(shape, F))
        node.set_merged_input(total, zero.output(0), inner.get_results()[1].output(0))
        outputs = [_last(node, inner, 1)]
        return [*outputs, _joined(node, inner, 0, joined, axis)] if joined else outputs

    return make


def _without_slices(ops, x, start):
    addend, total = ops.parameter([1, 2], F), ops.parameter([1, 2], F)
    inner = body(ops, [addend, total], ops.add(addend, total))
    node = ops.tensor_iterator()
    node.set_body(inner)
    node.set_invariant_input(addend, x.output(0))
    node.set_merged_input(total, start.output(0), inner.get_results()[0].output(0))
    return [_last(node, inner), _joined(node, inner)]


def _nested(ops, x, start):
    """The outer body iterates over rows, the inner one over elements: running sums of everything."""
    length = 3
    element, so_far = ops.parameter([1, 1], F), ops.parameter([1, 1], F)
    go_on = always(ops)
    inner_body = body(ops, [element, so_far], ops.add(element, so_far), go_on)
    row, total = ops.parameter([1, length], F), ops.parameter([1, 1], F)
    inner = loop_node(ops, ops.constant(np.int64(length)), always(ops), inner_body)
    inner.set_sliced_input(element, row.output(0), 0, 1, 1, -1, 1)
    inner.set_merged_input(so_far, total.output(0), inner_body.get_results()[0].output(0))
    outer_body = body(ops, [row, total], _last(inner, inner_body), _joined(inner, inner_body, axis=1))
    outer = ops.tensor_iterator()
    outer.set_body(outer_body)
    outer.set_sliced_input(row, x.output(0), 0, 1, 1, -1, 0)
    outer.set_merged_input(total, start.output(0), outer_body.get_results()[0].output(0))
    return [_last(outer, outer_body), _joined(outer, outer_body, 1)]


# OpenVINO's start and end determine the number of slices; the first slice is always at the very front, or back.
_FORWARD, _BACKWARD = (0, 1, 1, -1), (-1, -1, 1, 0)
_SLICES = (
    ("from-the-second", 6, (1, -1, 1, 1, 1, _FORWARD)),
    ("up-to-a-position", 6, (0, 4, 1)),
    ("between", 6, (1, 4, 1)),
    ("negative-end", 6, (0, -2, 1, 1, 1, _FORWARD)),
    ("negative-start", 6, (-4, -1, 1)),
    ("every-other", 6, (0, -1, 2, 1, 0)),
    ("pairs", 6, (0, -1, 2, 2, 1, (0, 2, 2, -1))),
    ("backwards-from-within", 6, (-2, 0, -1, 1, 1, _FORWARD)),
    ("backwards-to-within", 6, (-1, 2, -1, 1, 1, _BACKWARD)),
    ("backwards-pairs", 6, (-1, 0, -2, 2, 1, (-1, -2, 2, 0))),
    ("backwards-pairs-joined-forward", 6, (-1, 0, -2, 2, 1, (0, 2, 2, -1))),
    ("backwards-positive-start", 6, (4, 0, -1)),
    ("backwards-pairs-of-an-odd-size", 7, (-1, 1, -2, 2, 1, (-1, -2, 2, 0))),
    ("backwards-pairs-of-an-odd-size-to-its-beginning", 7, (-2, 0, -2, 2, 1, (-1, -2, 2, 0))),
    ("backwards-triples-of-the-last-axis", 8, (-2, 1, -3, 3, 2)),
    ("pairs-of-an-odd-size", 7, (1, -1, 2, 2, 1, (0, 2, 2, -1))),
    ("joined-backwards", 6, (0, -1, 1, 1, 1, _BACKWARD)),
    ("joined-to-a-position", 6, (0, -1, 1, 1, 1, (0, 1, 1, 6))),
    ("one", 1, (0, -1, 1, 1, 1, _FORWARD)),
)


def _iterators():
    backward = {"stride": -1, "start": -1, "end": 0}
    yield iterator_case(_iterator(), "forward", _iterated(6))
    yield iterator_case(_iterator(**backward), "backward", _iterated(6))
    yield iterator_case(_iterator(**backward, join_stride=1), "backward-joined-forward", _iterated(6))
    yield iterator_case(_iterator(stride=2, part=2), "parts-of-two", _iterated(6, part=2))
    yield iterator_case(_iterator(axis=0), "first-axis", _iterated(2, axis=0))
    yield iterator_case(_iterator(axis=2), "last-axis", _iterated(3, axis=2))
    yield iterator_case(_iterator(), "dynamic-length", _iterated(1, 5))
    yield iterator_case(_iterator(swap=True), "outputs-swapped", _iterated(6))
    for name, size, bounds in _SLICES:
        axis = bounds[4] if len(bounds) > 4 else 1
        x = ramp(*(size if i == axis else 2 for i in range(3))) + 1
        yield iterator_case(_slices(*bounds), f"slices-{name}", [static(x)])
    row, one = np.array([[1, 2]], F), np.ones((1, 1), F)
    yield iterator_case(_without_slices, "no-slices", [static(row), static(row * 3)])
    x = dynamic(ramp(4, 3), ramp(1, 3), dims=(-1, 3))
    yield iterator_case(_nested, "nested", [x, static(one, one)])


# -- Loop ------------------------------------------------------------------------------------------------------------------

loop_case = partial(layer_case, "Loop", "opset5", opset="opset8")


def _loop(limit=100.0, sliced=False, joined=True, counter="i64", untouched=True, flag="boolean"):
    """Adds 1 + iteration until the sum of the state reaches ``limit`` or the trip count is reached.

    ``flag``: the type of the condition after an iteration.
    """

    def make(ops, x, *rest):
        *data, trips, go = rest
        index = ops.parameter([] if counter == "i64" else [1], np.int64 if counter == "i64" else np.int32, "index")
        state, row = ops.parameter([1, 3], F), ops.parameter([1, 3], F)
        step = ops.add(ops.convert(index, "f32"), ops.constant(F(1)))
        following = ops.add(ops.add(state, step), row)
        again = ops.less(ops.reduce_sum(following, ops.constant([0, 1])), ops.constant(F(limit)))
        again = again if flag == "boolean" else ops.convert(again, flag)
        inner = body(ops, [index, state, row], again, following, ops.relu(row))
        node = loop_node(ops, trips, go, inner, 0, 0)
        node.set_merged_input(state, x.output(0), inner.get_results()[1].output(0))
        if sliced:
            node.set_sliced_input(row, data[0].output(0), 0, 1, 1, -1, 0)
        else:
            node.set_invariant_input(row, x.output(0))
        outputs = [_last(node, inner, 1)]
        outputs += [_last(node, inner, 2)] if untouched else []
        return [*outputs, _joined(node, inner, 1)] if joined else outputs

    return make


def _looped(*trips, go=TRUE, data=None):
    """Return the inputs of a Loop: the trip count of each run, or a constant one."""
    (first, *_), runs = trips, len(trips)
    inputs = [static(*[ramp(1, 3)] * (runs if isinstance(first, np.ndarray) else 1))]
    inputs += [] if data is None else [static(data)]
    return [*inputs, static(*trips) if isinstance(first, np.ndarray) else np.int64(first), go]


def _doubled_in_branch(trips=None):
    """x doubled ``trips`` times if the flag is set, else x + 1; the Loop's body contains an If."""

    def make(ops, flag, x, count):
        def even_or_odd():
            index, state = ops.parameter([], np.int64), ops.parameter([2, 3], F)
            even = ops.equal(ops.mod(index, ops.constant(np.int64(2))), ops.constant(np.int64(0)))
            a, b = ops.parameter([2, 3], F), ops.parameter([2, 3], F)
            then = body(ops, [a], ops.multiply(a, ops.constant(F(2))))
            other = body(ops, [b], ops.subtract(b, ops.constant(F(1))))
            return body(ops, [index, state], always(ops), *either(ops, even, [state], then, other))

        y, n = ops.parameter([2, 3], F), ops.parameter([], np.int64)
        inner = even_or_odd()
        loop = loop_node(ops, n if trips is None else ops.constant(np.int64(trips)), always(ops), inner, 0, 0)
        loop.set_merged_input(inner.get_parameters()[1], y.output(0), inner.get_results()[1].output(0))
        then = body(ops, [y, n] if trips is None else [y], _last(loop, inner, 1))
        z, m = ops.parameter([2, 3], F), ops.parameter([], np.int64)
        return either(ops, flag, [x, count], then, body(ops, [z, m], ops.add(z, ops.convert(m, "f32"))))

    return make


def _flagged(*runs):
    flags, counts = zip(*runs, strict=True)
    numbers = static(*map(np.array, counts))
    return [static(*flags), static(*[A] * len(runs)), numbers]


def _joined_scalars(ops, x, trips):
    """Doubles a scalar, and returns all values."""
    state = ops.parameter([], F)
    inner = body(ops, [state], ops.add(state, state), always(ops))
    loop = loop_node(ops, trips, always(ops), inner)
    loop.set_merged_input(state, x.output(0), inner.get_results()[0].output(0))
    return [_joined(loop, inner)]


def _joined_of_any_rank(axis):
    """Doubles a tensor of unknown rank, and concatenates all values."""

    def make(ops, x):
        state = ops.parameter(x.get_partial_shape(), F)
        one = ops.unsqueeze(state, ops.constant([axis]))
        inner = body(ops, [state], ops.add(state, state), one, always(ops))
        loop = loop_node(ops, ops.constant(np.int64(3)), always(ops), inner, -1, 2)
        loop.set_merged_input(state, x.output(0), inner.get_results()[0].output(0))
        return [_joined(loop, inner, 1, axis=axis)]

    return make


def _loops():
    yield loop_case(_loop(), "run-time-trips", _looped(*map(np.array, (3, 1, 50))))
    yield loop_case(_loop(joined=False), "endless-until-false", _looped(-1))
    yield loop_case(_loop(), "endless-joined", _looped(-1))
    yield loop_case(_loop(), "constant-trips", _looped(4))
    yield loop_case(_loop(sliced=True, limit=1e9), "sliced", _looped(4, data=ramp(4, 3)))
    yield loop_case(_loop(limit=-1e9), "stops-at-once", _looped(5))
    yield loop_case(_loop(counter="i32"), "i32-counter", _looped(3))
    for axis in (0, 1):
        yield loop_case(_joined_of_any_rank(axis), f"joined-of-any-rank-axis{axis}", [unranked(ramp(2), ramp(2, 3))])
    # Without an iteration the last value is uninitialized memory in OpenVINO.
    alone = _loop(joined=False, untouched=False)
    yield loop_case(_loop(untouched=False), "no-trips", _looped(np.array(0), np.array(2)))
    yield loop_case(alone, "no-trips-without-joining", _looped(np.array(0)))
    yield loop_case(alone, "constant-no-trips", _looped(0))
    yield loop_case(_loop(untouched=False), "constant-no-trips-joined", _looped(0))
    inputs = [static(np.array(3, F), np.array(-1, F)), static(np.array(2), np.array(1))]
    yield loop_case(_joined_scalars, "joins-scalars", inputs)
    yield loop_case(alone, "false-from-the-start", _looped(3, go=FALSE))
    x, go = ramp(1, 3), static(FALSE, TRUE)
    yield loop_case(alone, "condition-at-run-time", [static(x, x), np.int64(3), go])
    bytes_ = static(*np.array([0, 2], np.uint8))
    yield loop_case(_loop(joined=False, untouched=False, flag="u8"), "u8-conditions", [static(x, x), np.int64(50), bytes_])
    yield loop_case(_loop(sliced=True, limit=1e9), "fewer-trips-than-slices", _looped(2, data=ramp(4, 3)))


def _both():
    inputs = _flagged((TRUE, 3), (FALSE, 3), (TRUE, 1), (TRUE, 0))
    for case in (if_case, loop_case):
        yield case(_doubled_in_branch(), "loop-in-if", inputs)
    yield if_case(_doubled_in_branch(trips=2), "input-of-one-branch", _flagged((TRUE, 3), (FALSE, 3)))


CASES = [*_ifs(), *_iterators(), *_loops(), *_both()]
