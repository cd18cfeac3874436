"""Products, sums and inverses of matrices."""

from __future__ import annotations

from functools import partial

import numpy as np

from tests.conformance.operation_models import decided, dynamic, layer_case, mixed, shaped, static, statics, unranked

I32, I64, U8, F16, F32, F64 = np.int32, np.int64, np.uint8, np.float16, np.float32, np.float64


def _values(*shape, dtype=F32):
    return ((np.arange(int(np.prod(shape))) * 7 % 11) - 5).astype(dtype).reshape(shape)


def _turned(ops, matrix, other):
    """A product whose first operand is transposed by another layer."""
    return ops.matmul(ops.transpose(matrix, np.array([1, 0])), other, False, False)


def _mat_mul():
    def case(name, inputs, transpose_a=False, transpose_b=False, **settings):
        attributes = {"transpose_a": transpose_a, "transpose_b": transpose_b}
        return layer_case("MatMul", "opset1", "matmul", name, inputs, attributes, **settings)

    yield case("vectors", statics([_values(5), _values(5)]), True, True)
    yield case("vector-matrix", statics([_values(5), _values(3, 5)]), False, True)
    yield case("matrix-vector", statics([_values(5, 3), _values(5)]), True, True)
    yield case("batches", statics([_values(2, 1, 4, 3), _values(5, 4, 2)]), True)
    rank = decided("evaluate", "the CPU plugin does not support a Parameter of dynamic rank")
    first = unranked(_values(3, 2), _values(2, 3, 2), _values(3), _values(3, 2))
    yield case("dynamic-rank", [first, unranked(_values(4, 3), _values(4, 3), _values(3), _values(3))], True, True, **rank)
    turned = partial(layer_case, "MatMul", "opset1", _turned)
    yield turned("turned-matrix-vector", statics([_values(5, 3), _values(5)]))
    vectors = unranked(_values(5), _values(5, 2), _values(2, 5, 2))
    yield turned("turned-matrix-dynamic-rank", [dynamic(*[_values(5, 3)] * 3, dims=[-1, -1]), vectors], **rank)
    open_ended = partial(shaped, [[-1, 3], [3, -1]])
    yield case("i32", open_ended([_values(2, 3, dtype=I32), _values(3, 4, dtype=I32)]))
    yield case("f16", open_ended([_values(2, 3, dtype=F16), _values(3, 4, dtype=F16)]))
    weights = np.arange(12, dtype=F32).reshape(4, 3) % 7
    yield case("constant-transposed", [dynamic(_values(2, 3), _values(0, 3), dims=[-1, 3]), weights], False, True)
    bounded = [_values(2, 4, dtype=np.int8) * 4, _values(4, 3, dtype=np.int8) * 3]
    yield case("i8-bounded", shaped([[-1, 4], [4, -1]], bounded))
    nothing = decided("evaluate", "the CPU plugin fails where the dimension to sum over is empty")
    inputs = shaped([[-1, 0, 3], [2, 4, 0]], [_values(2, 0, 3), _values(2, 4, 0)])
    yield case("nothing-summed", inputs, True, True, **nothing)
    inputs = [dynamic(_values(0)), static(_values(2, 4, 0))]
    yield case("nothing-summed-of-a-vector", inputs, True, True, **nothing)
    yield case("no-matrix-vector", statics([_values(5, 0, 3), _values(3)]))
    yield case("no-matrices-vector", [dynamic(_values(2, 5, 3), _values(0, 5, 3)), dynamic(_values(3), _values(3))])
    yield case("vector-no-matrices", statics([_values(3), _values(0, 3, 2)]))
    for name, other in (("matrix", _values(5, 4)), ("batch-of-one", _values(1, 5, 4))):
        data = dynamic(_values(2, 5, 3), _values(0, 5, 3), dims=[-1, 5, 3])
        yield case(f"no-matrices-transposed-{name}", [data, static(other, other)], True)
    yield case("no-matrices", statics([_values(5, 1, 3, 4), _values(0, 4, 2)]))


def _grouped_mat_mul():
    """Each group's matrix is a constant, as the CPU plugin requires."""
    case = partial(layer_case, "GroupedMatMul", "opset17", "grouped_matmul")

    def random(*shape, dtype=F32, seed=0):
        return np.random.default_rng(seed + sum(shape)).normal(size=shape).astype(dtype)

    matrices = random(3, 5, 4, seed=3)
    for name, offsets in (
        ("groups", [2, 4, 7]),
        ("empty-groups", [0, 7, 7]),
        ("two-empty-groups", [0, 0, 7]),
        ("offsets-beyond", [2, 4, 9]),
    ):
        yield case(name, [static(random(7, 4)), matrices, static(np.array(offsets, I32))])
    data = dynamic(random(7, 4), random(2, 4), random(0, 4), dims=[-1, 4])
    yield case("dynamic-i64", [data, matrices, static(*map(np.array, ([1, 4, 7], [0, 1, 2], [0, 0, 0])))])
    for dtype in (F16, F64):
        inputs = [static(random(7, 4, dtype=dtype)), matrices.astype(dtype), static(np.array([2, 4, 7], I32))]
        yield case(np.dtype(dtype).name, inputs)
    yield case("batches", [static(random(3, 2, 4)), matrices])
    yield case("batches-dynamic", [dynamic(random(3, 2, 4), random(3, 5, 4), dims=[-1, -1, 4]), matrices])


def _einsum():
    def case(name, equation, *operands):
        def make(ops, *nodes):
            return ops.einsum(list(nodes), equation)

        return layer_case("Einsum", "opset7", make, name, operands)

    def operand(*shape, dtype=F32, seed=0):
        return dynamic(mixed(*shape, dtype=dtype, seed=seed))

    yield case("product", "ij,jk->ik", dynamic(mixed(2, 3), mixed(1, 4)), dynamic(mixed(3, 2, seed=1), mixed(4, 5, seed=1)))
    yield case("implicit-capitals-first", "AbC", operand(1, 2, 3))
    yield case("implicit-product", "dbc,ca", operand(2, 3, 4), operand(4, 2, seed=1))
    yield case("trace", "kii->k", operand(2, 3, 3))
    yield case("diagonal", "kii->ki", operand(2, 3, 3))
    yield case("apart", "iji->j", operand(3, 2, 3))
    yield case("diagonal-and-product", "iij,jk->ik", operand(3, 3, 2), operand(2, 4, seed=1))
    yield case("transposed", "ijk->kij", operand(1, 2, 3))
    yield case("inner", "i,i->", operand(5), operand(5, seed=1))
    yield case("outer", "i,j->ij", operand(2), operand(3, seed=1))
    yield case("three", "ab,bcd,bc->ca", operand(2, 5), operand(5, 3, 6, seed=1), operand(5, 3, seed=2))
    yield case("batches", "bij,bjk->bik", operand(3, 2, 4), operand(3, 4, 2, seed=1))
    yield case("batches-transposed", "bhid,bhjd->bhij", operand(2, 2, 3, 4), operand(2, 2, 5, 4, seed=1))
    yield case("batches-crossed", "bij,bjk->bki", operand(3, 2, 4), operand(3, 4, 2, seed=1))
    yield case("ellipsis-product", "...ij,...jk->...ik", operand(2, 3, 2, 4), operand(3, 4, 2, seed=1))
    yield case("ellipsis", "a...->...", operand(3, 2, 2))
    yield case("ellipsis-of-both", "a...b,b...->a...", operand(2, 1, 2, 3), operand(3, 2, 2, 1, seed=1))
    yield case("ellipsis-of-nothing", "a...,...->a...", operand(2, 3), operand(1, seed=1))
    yield case("ellipsis-of-one", "...,...->...", static(mixed(3, 1)), static(mixed(3, 2, seed=1)))
    yield case(
        "ellipsis-last", "ab...,ac...,ade->...bc", operand(2, 3, 4), operand(2, 2, 1, seed=1), operand(2, 4, 3, seed=2)
    )
    yield case("ellipsis-implicit", "...a", operand(2, 3))
    yield case("broadcast-label", "ij,ij->ij", operand(1, 3), operand(2, 3, seed=1))
    yield case("scalar", "i,->i", operand(3), static(np.array(2, F32)))
    for dtype in (F16, I32, I64, U8):
        yield case(np.dtype(dtype).name, "ij,jk->ik", operand(2, 3, dtype=dtype), operand(3, 2, dtype=dtype, seed=1))
    for dtype in (np.int8, U8):
        rows, columns = np.array([[100, 90, 3], [1, 2, 3]], dtype), np.array([[2, 1], [1, 0], [7, 9]], dtype)
        if dtype == np.int8:
            rows[0] *= -1
        for name, equation, *arrays in (
            ("product", "ij,jk->ik", rows, columns),
            ("sum", "ij->i", rows),
            ("inner", "i,i->", rows[0], columns[:, 0]),
            ("elements", "ij,ij->ij", rows, rows),
            ("outer", "ij,k->ik", rows, columns[2]),
        ):
            yield case(f"{np.dtype(dtype).name}-saturates-{name}", equation, *(dynamic(array) for array in arrays))


def _inverse():
    def case(name, *arrays, adjoint=False, **settings):
        return layer_case("Inverse", "opset14", "inverse", name, [dynamic(*arrays)], {"adjoint": adjoint}, **settings)

    matrix = np.array([[4, 7, 2], [3, 6, 1], [2, 5, 3]], F32)
    random = np.random.default_rng(0).normal(size=(2, 3, 7, 7)).astype(F32)
    loose = {"rtol": 1e-3, "atol": 1e-4}
    for adjoint in (False, True):
        suffix = "adjoint" if adjoint else "plain"
        yield case(f"matrix-{suffix}", matrix, np.eye(5, dtype=F32)[::-1].copy(), adjoint=adjoint)
        yield case(f"batches-{suffix}", random, adjoint=adjoint, **loose)
        yield case(f"float16-{suffix}", matrix.astype(F16), adjoint=adjoint)
        yield case(f"float64-{suffix}", matrix.astype(F64), adjoint=adjoint)
    yield case("pivots", np.array([[[0, 2, 1], [1, 1, 0], [3, 0, 1]], [[1e-6, 1, 0], [1, 1, 1], [0, 1, 2]]], F32), **loose)
    yield case("one", np.array([[4]], F32))
    yield case("none", np.zeros((0, 2, 2), F32))
    yield case("singular", np.array([[1, 2], [2, 4]], F32))


CASES = [*_mat_mul(), *_grouped_mat_mul(), *_einsum(), *_inverse()]
