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
        node.set_input(
            value.output(0), then_body.get_parameters()[index], else_body.get_parameters()[index]
        )
    return [
        node.set_output(then_body.get_results()[i], else_body.get_results()[i]) for i in range(outputs)
    ]


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


def _loop(trip=None, limit=100.0, condition=True, sliced=False, joined=True, counter="i64"):
    """Adds 1 + iteration until the sum of the state reaches ``limit`` or the trips are over."""

    def build():
        import openvino as ov
        from openvino import opset8 as ops

        x = ops.parameter([1, 3], F, "x")
        data = ops.parameter([4, 3], F, "data")
        trips = ops.parameter([], np.int64, "trips") if trip is None else ops.constant(np.int64(trip))
        go = ops.constant(np.bool_(condition))
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
        outputs.append(node.get_iter_value(body.get_results()[2].output(0), -1))
        if joined:
            outputs.append(node.get_concatenated_slices(body.get_results()[1].output(0), 0, 1, 1, -1, 0))
        return ov.Model(outputs, [x, *([data] if sliced else []), *([trips] if trip is None else [])])

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
        Case(_operation, "opset3", "one-row", _variable("opset3", dims=(1, 4), shape=(1, 4)), [(_range(1, 4),)] * 2, state=True),
    ]
