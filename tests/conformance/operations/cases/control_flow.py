"""If, Loop, TensorIterator, and variables."""

from __future__ import annotations

import numpy as np

from tests.conformance.case import Case

F = np.float32


def _range(*shape):
    return np.arange(int(np.prod(shape)), dtype=F).reshape(shape)


# -- If -------------------------------------------------------------------------------------------------------------------


def _if(shape=(2, 3), else_shape=None, constant=None, nested=False, outputs=1):
    def build():
        import openvino as ov
        from openvino import opset8 as ops

        condition = ops.constant(np.bool_(constant)) if constant is not None else ops.parameter([], np.bool_, "condition")
        x, y = ops.parameter(list(shape), F, "x"), ops.parameter(list(else_shape or shape), F, "y")

        def body(first, second, emit):
            a, b = ops.parameter(list(first), F), ops.parameter(list(second), F)
            return ov.Model([ops.result(r) for r in emit(a, b)], [a, b])

        def inner(a, b):
            if not nested:
                return [ops.add(a, b), ops.subtract(a, b)][:outputs]
            test = ops.greater(ops.reduce_sum(a, ops.constant([0, 1])), ops.constant(F(10)))
            return _if_node(ov, ops, test, a, b, body(shape, shape, lambda p, q: [p]), body(shape, shape, lambda p, q: [q]))

        def otherwise(a, b):
            return [ops.multiply(b, ops.constant(F(2))), ops.relu(b)][:outputs]

        then_body = body(shape, else_shape or shape, (lambda a, b: [ops.relu(a)]) if else_shape else inner)
        else_body = body(shape, else_shape or shape, otherwise)
        results = _if_node(ov, ops, condition, x, y, then_body, else_body, outputs)
        return ov.Model(results, [*([] if constant is not None else [condition]), x, y])

    return build


def _if_node(ov, ops, condition, x, y, then_body, else_body, outputs=1):
    node = ops.if_op(condition.output(0) if hasattr(condition, "output") else condition)
    node.set_then_body(then_body)
    node.set_else_body(else_body)
    for index, value in enumerate((x, y)):
        node.set_input(value.output(0), then_body.get_parameters()[index], else_body.get_parameters()[index])
    return [node.set_output(then_body.get_results()[i], else_body.get_results()[i]) for i in range(outputs)]


TRUE, FALSE = np.array(True), np.array(False)
A, B = _range(2, 3), -_range(2, 3) * 2

CASES = [
    Case("If", "opset8", "both", _if(), [(TRUE, A, B), (FALSE, A, B)]),
    Case("If", "opset8", "constant-condition", _if(constant=True), [(A, B)]),
    Case("If", "opset8", "nested", _if(nested=True), [(TRUE, A, B), (TRUE, A * 0, B), (FALSE, A, B)]),
    Case("If", "opset8", "two-outputs", _if(outputs=2), [(TRUE, A, B), (FALSE, A, B)]),
    Case(
        "If",
        "opset8",
        "branches-of-other-shapes",
        _if(shape=(-1, 3), else_shape=(2, -1)),
        [(TRUE, _range(4, 3), _range(2, 5)), (FALSE, _range(4, 3), _range(2, 5))],
    ),
]


def _scalar_and_vector():
    """One branch gives a scalar, the other a vector: then both are vectors."""
    import openvino as ov
    from openvino import opset8 as ops

    flag, x = ops.parameter([], np.bool_, "flag"), ops.parameter([-1], F, "x")
    bodies = []
    for emit in (lambda a: ops.reduce_sum(a, ops.constant([0])), ops.relu):
        a = ops.parameter([-1], F)
        bodies.append(ov.Model([ops.result(emit(a))], [a]))
    node = ops.if_op(flag.output(0))
    node.set_then_body(bodies[0])
    node.set_else_body(bodies[1])
    node.set_input(x.output(0), *(body.get_parameters()[0] for body in bodies))
    return ov.Model([node.set_output(*(body.get_results()[0] for body in bodies))], [flag, x])


CASES.append(
    Case("If", "opset8", "scalar-and-vector", _scalar_and_vector, [(TRUE, _range(3)), (FALSE, _range(3)), (TRUE, _range(1))])
)


# -- TensorIterator --------------------------------------------------------------------------------------------------------


def _iterator(axis=1, stride=1, start=0, end=-1, part=1, join_stride=None, dynamic=False, last=True, swap=False):
    """Accumulates slices of ``x`` times an invariant; gives the joined partial sums and the last one."""

    def build():
        import openvino as ov
        from openvino import opset8 as ops

        shape = [2, 6, 3]
        x = ops.parameter([-1 if dynamic and i == axis else d for i, d in enumerate(shape)], F, "x")
        factor = ops.parameter([3] if axis != 2 else [1], F, "factor")
        slice_shape = [part if i == axis else d for i, d in enumerate(shape)]
        state = ops.parameter(slice_shape, F, "state")
        piece, scale, total = (
            ops.parameter(slice_shape, F),
            ops.parameter(factor.get_partial_shape(), F),
            ops.parameter(slice_shape, F),
        )
        following = ops.add(total, ops.multiply(piece, scale))
        body = ov.Model([ops.result(following), ops.result(ops.relu(following))], [piece, scale, total])
        node = ops.tensor_iterator()
        node.set_body(body)
        node.set_sliced_input(piece, x.output(0), start, stride, part, end, axis)
        node.set_invariant_input(scale, factor.output(0))
        node.set_merged_input(total, state.output(0), body.get_results()[0].output(0))
        outputs = []
        step = stride if join_stride is None else join_stride
        begin, finish = (0, -1) if step > 0 else (-1, 0)
        outputs.append(node.get_concatenated_slices(body.get_results()[1].output(0), begin, step, part, finish, axis))
        if last:
            outputs.append(node.get_iter_value(body.get_results()[0].output(0), -1))
            outputs.append(node.get_iter_value(body.get_results()[1].output(0), -1))
        if swap:
            outputs = outputs[::-1]
        return ov.Model(outputs, [x, factor, state])

    return build


def _iterator_inputs(axis=1, part=1, size=6):
    shape = [2, 6, 3]
    shape[axis] = size
    x = _range(*shape) - 9
    shape[axis] = part
    return x, np.array([1, -1, 2], F) if axis != 2 else np.array([2], F), np.ones(shape, F)


CASES += [
    Case("TensorIterator", "opset1", "forward", _iterator(), [_iterator_inputs()]),
    Case("TensorIterator", "opset1", "backward", _iterator(stride=-1, start=-1, end=0), [_iterator_inputs()]),
    Case("TensorIterator", "opset1", "backward-joined-forward", _iterator(stride=-1, start=-1, end=0, join_stride=1), [_iterator_inputs()]),
    Case("TensorIterator", "opset1", "parts-of-two", _iterator(stride=2, part=2), [_iterator_inputs(part=2)]),
    Case("TensorIterator", "opset1", "first-axis", _iterator(axis=0), [_iterator_inputs(axis=0, size=2)]),
    Case("TensorIterator", "opset1", "last-axis", _iterator(axis=2), [_iterator_inputs(axis=2, size=3)]),
    Case(
        "TensorIterator",
        "opset1",
        "dynamic-length",
        _iterator(dynamic=True),
        [_iterator_inputs(size=1), _iterator_inputs(size=5)],
    ),
    Case("TensorIterator", "opset1", "outputs-swapped", _iterator(swap=True), [_iterator_inputs()]),
]  # fmt: skip


# -- Loop ------------------------------------------------------------------------------------------------------------------


def _loop(trip=None, limit=100.0, condition=True, sliced=False, joined=True, counter="i64", untouched=True):
    """Adds 1 + iteration until the sum of the state reaches ``limit`` or the trips are over."""

    def build():
        import openvino as ov
        from openvino import opset8 as ops

        x = ops.parameter([1, 3], F, "x")
        data = ops.parameter([4, 3], F, "data")
        trips = ops.parameter([], np.int64, "trips") if trip is None else ops.constant(np.int64(trip))
        go = ops.parameter([], np.bool_, "go") if condition is None else ops.constant(np.bool_(condition))
        index = ops.parameter([] if counter == "i64" else [1], np.int64 if counter == "i64" else np.int32, "index")
        state, row = ops.parameter([1, 3], F), ops.parameter([1, 3], F)
        step = ops.add(ops.convert(index, "f32"), ops.constant(F(1)))
        following = ops.add(ops.add(state, step), row)
        again = ops.less(ops.reduce_sum(following, ops.constant([0, 1])), ops.constant(F(limit)))
        body = ov.Model([ops.result(again), ops.result(following), ops.result(ops.relu(row))], [index, state, row])
        node = ops.loop(trips.output(0), go.output(0))
        node.set_function(body)
        node.set_special_body_ports([0, 0])
        node.set_merged_input(state, x.output(0), body.get_results()[1].output(0))
        if sliced:
            node.set_sliced_input(row, data.output(0), 0, 1, 1, -1, 0)
        else:
            node.set_invariant_input(row, x.output(0))
        outputs = [node.get_iter_value(body.get_results()[1].output(0), -1)]
        if untouched:
            outputs.append(node.get_iter_value(body.get_results()[2].output(0), -1))
        if joined:
            outputs.append(node.get_concatenated_slices(body.get_results()[1].output(0), 0, 1, 1, -1, 0))
        optional = [*([data] if sliced else []), *([trips] if trip is None else []), *([go] if condition is None else [])]
        return ov.Model(outputs, [x, *optional])

    return build


X = _range(1, 3)
CASES += [
    Case("Loop", "opset5", "run-time-trips", _loop(), [(X, np.array(3)), (X, np.array(1)), (X, np.array(50))]),
    Case("Loop", "opset5", "endless-until-false", _loop(trip=-1, joined=False), [(X,)]),
    Case("Loop", "opset5", "endless-joined", _loop(trip=-1), [(X,)]),
    Case("Loop", "opset5", "constant-trips", _loop(trip=4), [(X,)]),
    Case("Loop", "opset5", "sliced", _loop(trip=4, sliced=True, limit=1e9), [(X, _range(4, 3))]),
    Case("Loop", "opset5", "stops-at-once", _loop(trip=5, limit=-1e9), [(X,)]),
    Case("Loop", "opset5", "i32-counter", _loop(trip=3, counter="i32"), [(X,)]),
]


# -- variables -------------------------------------------------------------------------------------------------------------


def _variable(opset="opset6", initial="constant", dims=(2, 3), shape=(2, 3), grow=False):
    def build():
        import openvino as ov
        from openvino import opset3, opset8

        ops = opset8
        x = ops.parameter(list(dims), F, "x")
        if initial == "constant":
            start = ops.constant(np.full([d if d > 0 else 1 for d in shape], 5, F))
        elif initial == "computed":
            start = ops.multiply(x, ops.constant(F(10)))
        else:
            start = None
        if opset == "opset3":
            read = opset3.read_value(start, "memory")
        else:
            arguments = ["memory", ov.Type.f32, ov.PartialShape(list(shape))]
            read = opset8.read_value(start, *arguments) if start is not None else opset8.read_value(*arguments)
        following = ops.concat([read, x], 0) if grow else ops.add(read, x)
        write = opset3.assign(following, "memory") if opset == "opset3" else opset8.assign(following, "memory")
        return ov.Model([ops.result(ops.relu(following))], [write], [x])

    return build


RUNS = [(A,), (A + 1,), (A * 2,)]
for _operation in ("ReadValue", "Assign"):
    CASES += [
        Case(_operation, "opset6", "constant-initial", _variable(), RUNS, state=True),
        Case(_operation, "opset6", "computed-initial", _variable(initial="computed"), RUNS, state=True),
        Case(_operation, "opset6", "stateless-runs", _variable(), RUNS),
        Case(
            _operation,
            "opset6",
            "grows",
            _variable(shape=(-1, 3), dims=(-1, 3), grow=True),
            [(A,), (_range(1, 3),), (A,)],
            state=True,
        ),
        Case(_operation, "opset6", "no-initial", _variable(initial=None), RUNS, state=True),
        Case(_operation, "opset3", "constant-initial", _variable("opset3"), RUNS, state=True),
        Case(_operation, "opset3", "computed-initial", _variable("opset3", "computed"), RUNS, state=True),
        Case(_operation, "opset3", "stateless-runs", _variable("opset3"), RUNS),
        Case(
            _operation,
            "opset3",
            "one-row",
            _variable("opset3", dims=(1, 4), shape=(1, 4)),
            [(_range(1, 4),)] * 2,
            state=True,
        ),
    ]


# -- bounds and strides of slices ------------------------------------------------------------------------------------------


def _sliced(size, start, end, stride, part=1, axis=1, joined=None):
    """Ten times the sum so far plus the slice, and where ``joined`` says how, the slices joined."""

    def build():
        import openvino as ov
        from openvino import opset8 as ops

        shape = [2, 2, 2]
        shape[axis] = size
        piece_shape = [part if i == axis else d for i, d in enumerate(shape)]
        x, zero = ops.parameter(shape, F, "x"), ops.constant(np.zeros(piece_shape, F))
        piece, total = ops.parameter(piece_shape, F), ops.parameter(piece_shape, F)
        following = ops.add(ops.multiply(total, ops.constant(F(10))), piece)
        body = ov.Model([ops.result(ops.multiply(piece, ops.constant(F(2)))), ops.result(following)], [piece, total])
        node = ops.tensor_iterator()
        node.set_body(body)
        node.set_sliced_input(piece, x.output(0), start, stride, part, end, axis)
        node.set_merged_input(total, zero.output(0), body.get_results()[1].output(0))
        outputs = [node.get_iter_value(body.get_results()[1].output(0), -1)]
        if joined:
            outputs.append(node.get_concatenated_slices(body.get_results()[0].output(0), *joined, axis))
        return ov.Model(outputs, [x])

    return build


def _sliced_input(size, axis=1):
    shape = [2, 2, 2]
    shape[axis] = size
    return (_range(*shape) + 1,)


# OpenVINO's start and end say how many slices there are; the first slice is always that at the very front, or back.
_FORWARD, _BACKWARD = (0, 1, 1, -1), (-1, -1, 1, 0)
CASES += [
    Case("TensorIterator", "opset1", f"slices-{name}", _sliced(size, *bounds), [_sliced_input(size, *bounds[4:5])])
    for name, size, bounds in (
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
        ("joined-backwards", 6, (0, -1, 1, 1, 1, _BACKWARD)),
        ("joined-to-a-position", 6, (0, -1, 1, 1, 1, (0, 1, 1, 6))),
        ("one", 1, (0, -1, 1, 1, 1, _FORWARD)),
    )
]


# -- nested bodies ---------------------------------------------------------------------------------------------------------


def _loop_node(ops, trips, go, body, counter=0, condition=0):
    node = ops.loop(trips.output(0), go.output(0))
    node.set_function(body)
    node.set_special_body_ports([counter, condition])
    return node


def _loop_in_if(trips=None):
    """If the flag says so, x doubled ``trips`` times, else x + 1; the Loop's body holds an If itself."""

    def build():
        import openvino as ov
        from openvino import opset8 as ops

        flag, x = ops.parameter([], np.bool_, "flag"), ops.parameter([2, 3], F, "x")
        count = ops.parameter([], np.int64, "count")

        def even_or_odd():
            index, state = ops.parameter([], np.int64), ops.parameter([2, 3], F)
            even = ops.equal(ops.mod(index, ops.constant(np.int64(2))), ops.constant(np.int64(0)))
            a, b = ops.parameter([2, 3], F), ops.parameter([2, 3], F)
            then = ov.Model([ops.result(ops.multiply(a, ops.constant(F(2))))], [a])
            other = ov.Model([ops.result(ops.subtract(b, ops.constant(F(1))))], [b])
            choice = ops.if_op(even.output(0))
            choice.set_then_body(then)
            choice.set_else_body(other)
            choice.set_input(state.output(0), then.get_parameters()[0], other.get_parameters()[0])
            following = choice.set_output(then.get_results()[0], other.get_results()[0])
            return ov.Model([ops.result(ops.constant(np.bool_(True))), ops.result(following)], [index, state])

        y, n = ops.parameter([2, 3], F), ops.parameter([], np.int64)
        body = even_or_odd()
        loop = _loop_node(ops, n if trips is None else ops.constant(np.int64(trips)), ops.constant(np.bool_(True)), body)
        loop.set_merged_input(body.get_parameters()[1], y.output(0), body.get_results()[1].output(0))
        then_parameters = [y, n] if trips is None else [y]
        then = ov.Model([ops.result(loop.get_iter_value(body.get_results()[1].output(0), -1))], then_parameters)
        z, m = ops.parameter([2, 3], F), ops.parameter([], np.int64)
        rest = ops.add(z, ops.convert(m, "f32"))
        other = ov.Model([ops.result(rest)], [z, m])
        node = ops.if_op(flag.output(0))
        node.set_then_body(then)
        node.set_else_body(other)
        node.set_input(x.output(0), y, z)
        node.set_input(count.output(0), n if trips is None else None, m)
        return ov.Model([node.set_output(then.get_results()[0], other.get_results()[0])], [flag, x, count])

    return build


def _loop_in_iterator(length=3):
    """The outer body takes rows, the inner one their elements: running sums of everything."""

    def build():
        import openvino as ov
        from openvino import opset8 as ops

        x, start = ops.parameter([-1, length], F, "x"), ops.parameter([1, 1], F, "start")
        element, so_far = ops.parameter([1, 1], F), ops.parameter([1, 1], F)
        go_on = ops.result(ops.constant(np.bool_(True)))
        inner_body = ov.Model([ops.result(ops.add(element, so_far)), go_on], [element, so_far])
        row, total = ops.parameter([1, length], F), ops.parameter([1, 1], F)
        inner = _loop_node(ops, ops.constant(np.int64(length)), ops.constant(np.bool_(True)), inner_body, -1, 1)
        inner.set_sliced_input(element, row.output(0), 0, 1, 1, -1, 1)
        inner.set_merged_input(so_far, total.output(0), inner_body.get_results()[0].output(0))
        last = inner.get_iter_value(inner_body.get_results()[0].output(0), -1)
        sums = inner.get_concatenated_slices(inner_body.get_results()[0].output(0), 0, 1, 1, -1, 1)
        body = ov.Model([ops.result(last), ops.result(sums)], [row, total])
        outer = ops.tensor_iterator()
        outer.set_body(body)
        outer.set_sliced_input(row, x.output(0), 0, 1, 1, -1, 0)
        outer.set_merged_input(total, start.output(0), body.get_results()[0].output(0))
        outputs = [outer.get_iter_value(body.get_results()[0].output(0), -1)]
        outputs.append(outer.get_concatenated_slices(body.get_results()[1].output(0), 0, 1, 1, -1, 0))
        return ov.Model(outputs, [x, start])

    return build


def _scalar_loop():
    """Doubles a scalar, and gives all of them."""
    import openvino as ov
    from openvino import opset8 as ops

    x, trips, state = ops.parameter([], F, "x"), ops.parameter([], np.int64, "trips"), ops.parameter([], F)
    body = ov.Model([ops.result(ops.add(state, state)), ops.result(ops.constant(np.bool_(True)))], [state])
    loop = _loop_node(ops, trips, ops.constant(np.bool_(True)), body, -1, 1)
    loop.set_merged_input(state, x.output(0), body.get_results()[0].output(0))
    return ov.Model([loop.get_concatenated_slices(body.get_results()[0].output(0), 0, 1, 1, -1, 0)], [x, trips])


def _joined_of_any_rank(axis):
    """Doubles a tensor of unknown rank, and gives all of them side by side."""

    def build():
        import openvino as ov
        from openvino import opset8 as ops

        x, state = (ops.parameter(ov.PartialShape.dynamic(), F) for _ in range(2))
        one = ops.result(ops.unsqueeze(state, ops.constant([axis])))
        body = ov.Model([ops.result(ops.add(state, state)), one, ops.result(ops.constant(np.bool_(True)))], [state])
        loop = _loop_node(ops, ops.constant(np.int64(3)), ops.constant(np.bool_(True)), body, -1, 2)
        loop.set_merged_input(state, x.output(0), body.get_results()[0].output(0))
        return ov.Model([loop.get_concatenated_slices(one.output(0), 0, 1, 1, -1, axis)], [x])

    return build


_ONE = np.ones((1, 1), F)
CASES += [
    Case("Loop", "opset5", f"joined-of-any-rank-axis{axis}", _joined_of_any_rank(axis), [(_range(2),), (_range(2, 3),)])
    for axis in (0, 1)
]
CASES += [
    Case(
        operation,
        version,
        "loop-in-if",
        _loop_in_if(),
        [(TRUE, A, np.array(3)), (FALSE, A, np.array(3)), (TRUE, A, np.array(1)), (TRUE, A, np.array(0))],
    )
    for operation, version in (("If", "opset8"), ("Loop", "opset5"))
]
CASES += [
    Case("If", "opset8", "input-of-one-branch", _loop_in_if(trips=2), [(TRUE, A, np.array(3)), (FALSE, A, np.array(3))]),
    Case("TensorIterator", "opset1", "nested", _loop_in_iterator(), [(_range(4, 3), _ONE), (_range(1, 3), _ONE)]),
    # What the last iteration would have given is uninitialised memory in OpenVINO where there is none.
    Case("Loop", "opset5", "no-trips", _loop(untouched=False), [(X, np.array(0)), (X, np.array(2))]),
    Case("Loop", "opset5", "no-trips-without-joining", _loop(joined=False, untouched=False), [(X, np.array(0))]),
    Case("Loop", "opset5", "constant-no-trips", _loop(trip=0, joined=False, untouched=False), [(X,)]),
    Case("Loop", "opset5", "constant-no-trips-joined", _loop(trip=0, untouched=False), [(X,)]),
    Case("Loop", "opset5", "joins-scalars", _scalar_loop, [(np.array(3, F), np.array(2)), (np.array(-1, F), np.array(1))]),
    Case("Loop", "opset5", "false-from-the-start", _loop(trip=3, condition=False, joined=False, untouched=False), [(X,)]),
    Case(
        "Loop",
        "opset5",
        "condition-at-run-time",
        _loop(trip=3, condition=None, joined=False, untouched=False),
        [(X, FALSE), (X, TRUE)],
    ),
    Case("Loop", "opset5", "fewer-trips-than-slices", _loop(trip=2, sliced=True, limit=1e9), [(X, _range(4, 3))]),
]


# -- variables inside bodies -----------------------------------------------------------------------------------------------


def _adding(name="memory", start="constant", factor=1, grow=False):
    """A body that adds ``factor`` times its Parameter to a variable (or joins it behind), and gives the sum."""
    import openvino as ov
    from openvino import opset8 as ops

    shape = [-1, 2] if grow else [2]
    x = ops.parameter(shape, F)
    initial = {
        "constant": lambda: [ops.constant(np.array([5, 6], F))],
        "computed": lambda: [ops.multiply(x, ops.constant(F(100)))],
        "none": list,
    }[start]()
    read = ops.read_value(*initial, name, ov.Type.f32, ov.PartialShape(shape))
    following = ops.concat([read, x], 0) if grow else ops.add(read, ops.multiply(x, ops.constant(F(factor))))
    go_on = ops.result(ops.constant(np.bool_(True)))
    return ov.Model([ops.result(following), go_on], [ops.assign(following, name)], [x])


def _repeated(ops, body, trips, x):
    """The last value of a Loop over ``body``."""
    loop = _loop_node(ops, trips, ops.constant(np.bool_(True)), body, -1, 1)
    loop.set_invariant_input(body.get_parameters()[0], x.output(0))
    return loop.get_iter_value(body.get_results()[0].output(0), -1)


def _variable_in_loop(start="constant", grow=False, nested=False):
    def build():
        import openvino as ov
        from openvino import opset8 as ops

        x, trips = ops.parameter([-1, 2] if grow else [2], F, "x"), ops.parameter([], np.int64, "trips")
        body = _adding(start=start, grow=grow)
        if nested:
            y = ops.parameter([2], F)
            inner = _repeated(ops, body, ops.constant(np.int64(2)), y)
            body = ov.Model([ops.result(inner), ops.result(ops.constant(np.bool_(True)))], [y])
        return ov.Model([_repeated(ops, body, trips, x)], [x, trips])

    return build


def _variable_in_if(start="constant", both=False):
    def build():
        import openvino as ov
        from openvino import opset8 as ops

        flag, x, y = ops.parameter([], np.bool_, "flag"), ops.parameter([2], F, "x"), ops.parameter([2], F)
        other = _adding("other", start, 3) if both else ov.Model([ops.result(ops.relu(y))], [y])
        then = _adding(start=start)
        node = ops.if_op(flag.output(0))
        node.set_then_body(then)
        node.set_else_body(other)
        node.set_input(x.output(0), then.get_parameters()[0], other.get_parameters()[0])
        return ov.Model([node.set_output(then.get_results()[0], other.get_results()[0])], [flag, x])

    return build


def _iterator_without_slices():
    import openvino as ov
    from openvino import opset8 as ops

    x, start = ops.parameter([1, 2], F, "x"), ops.parameter([1, 2], F, "start")
    addend, total = ops.parameter([1, 2], F), ops.parameter([1, 2], F)
    body = ov.Model([ops.result(ops.add(addend, total))], [addend, total])
    node = ops.tensor_iterator()
    node.set_body(body)
    node.set_invariant_input(addend, x.output(0))
    node.set_merged_input(total, start.output(0), body.get_results()[0].output(0))
    following = body.get_results()[0].output(0)
    return ov.Model(
        [node.get_iter_value(following, -1), node.get_concatenated_slices(following, 0, 1, 1, -1, 0)], [x, start]
    )


_V = np.array([1, 2], F)
_TRIPS = [(_V, np.array(3)), (_V * 10, np.array(1)), (-_V, np.array(2))]
_FLAGS = [(FALSE, _V), (TRUE, _V * 2), (TRUE, _V), (FALSE, _V), (TRUE, -_V)]
for _operation in ("ReadValue", "Assign"):
    CASES += [
        *(
            Case(_operation, "opset6", f"in-a-loop-{start}", _variable_in_loop(start), _TRIPS, state=True)
            for start in ("constant", "computed", "none")
        ),
        Case(_operation, "opset6", "in-nested-loops", _variable_in_loop(nested=True), _TRIPS, state=True),
        Case(_operation, "opset6", "in-a-loop-anew-with-each-run", _variable_in_loop(), _TRIPS),
        Case(_operation, "opset6", "in-a-loop-grows", _variable_in_loop("none", grow=True),
             [(_V[None], np.array(2)), (_V[None] * 3, np.array(1))], state=True),
        *(
            Case(_operation, "opset6", f"in-a-branch-{start}", _variable_in_if(start), _FLAGS, state=True)
            for start in ("constant", "computed", "none")
        ),
        Case(_operation, "opset6", "in-both-branches", _variable_in_if("computed", both=True), _FLAGS, state=True),
    ]  # fmt: skip
CASES += [
    Case("TensorIterator", "opset1", "no-slices", _iterator_without_slices, [(_V[None], _V[None] * 3)]),
    Case(
        "Loop",
        "opset5",
        "no-trips-variable-stays",
        _variable_in_loop("computed"),
        [_TRIPS[0], (_V, np.array(1))],
        state=True,
    ),
]
