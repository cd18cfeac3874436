"""Einstein's sums, inverses, images out of columns."""

from __future__ import annotations

import numpy as np

from tests.conformance.models import dynamic, layer_case, mixed, static, unranked

I32, I64, U8, F16, F32, F64 = np.int32, np.int64, np.uint8, np.float16, np.float32, np.float64


def _einsum():
    def case(name, equation, *operands, **settings):
        def make(o, *nodes):
            return o.einsum(list(nodes), equation)

        return layer_case("Einsum", "opset7", make, name, operands, **settings)

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


def _col2im():
    def case(name, data, image, block, **attributes):
        return layer_case("Col2Im", "opset15", "col2im", name, [data, image, block], attributes)

    settings = {"strides": [2, 1], "dilations": [1, 2], "pads_begin": [0, 1], "pads_end": [1, 0]}
    for dtype in (F32, F16, F64, I32, I64, U8):
        name = np.dtype(dtype).name
        yield case(
            name, dynamic(mixed(2, 12, 4, dtype=dtype), mixed(1, 4, 4, dtype=dtype)), np.array([3, 3]), np.array([2, 2])
        )
        yield case(
            f"{name}-everything",
            dynamic(mixed(2, 8, 8, dtype=dtype)),
            np.array([4, 5], I32),
            np.array([2, 2], I32),
            **settings,
        )
        yield case(f"{name}-empty-batch", static(mixed(0, 4, 4, dtype=dtype)), np.array([3, 3]), np.array([2, 2]))
        yield case(f"{name}-no-batch", dynamic(mixed(4, 4, dtype=dtype)), np.array([3, 3]), np.array([2, 2]))
        yield case(f"{name}-any-rank", unranked(mixed(2, 4, 4, dtype=dtype), mixed(4, 4, dtype=dtype)), np.array([3, 3]),
                   np.array([2, 2]))  # fmt: skip
        yield case(f"{name}-at-run-time", dynamic(mixed(1, 4, 4, dtype=dtype), mixed(1, 6, 4, dtype=dtype)),
                   static(np.array([3, 3]), np.array([3, 4])), static(np.array([2, 2]), np.array([2, 3])))  # fmt: skip


CASES = [*_einsum(), *_inverse(), *_col2im()]
