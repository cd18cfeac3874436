"""Layers that gather or scatter elements by index, sort, search or count them."""

from __future__ import annotations

import numpy as np

from tests.conformance.random.graph import ANY, FLOATS, NUMBERS, Graph, Unfit, Value, maker


def places(g: Graph, size: int, shape: tuple[int, ...] | list[int], negative: bool = True) -> np.ndarray:
    """Return indices into ``size`` elements."""
    if size < 1:
        if 0 in shape:
            return np.zeros(shape, np.int64)
        raise Unfit("nothing to index")
    return g.rng.integers(-size if negative and g.chance(0.3) else 0, size, shape)


@maker(3)
def gather(g: Graph) -> None:
    x = g.value(ANY, (1, 4))
    axis = g.axis(x)
    version = g.pick("opset1", "opset7", "opset8")
    batch = g.int(0, axis % x.rank) if version != "opset1" and g.chance(0.3) else 0
    shape = [*x.dims[:batch], *g.shape(g.int(0, 2), 4)]
    indices = places(g, x.dims[axis], shape, version == "opset8")
    more = {} if version == "opset1" else {"batch_dims": batch - len(shape) if batch and g.chance(0.2) else batch}
    g.layer("Gather", version, x, g.index(indices, 0.5), g.index(axis, 0.9), **more)


@maker()
def gather_elements(g: Graph) -> None:
    x = g.value(ANY, (1, 4))
    axis = g.axis(x)
    shape = list(x.dims)
    shape[axis] = g.int(1, 5)
    g.layer("GatherElements", "opset6", x, g.index(places(g, x.dims[axis], shape), 0.4), axis=axis)


def _tuples(g: Graph, x: Value, batch: int = 0, negative: bool = True) -> np.ndarray:
    """Return indices of leading axes after the batch axes."""
    depth = g.int(1, x.rank - batch)
    shape = [*x.dims[:batch], *g.shape(g.int(0 if batch else 1, 2), 4)]
    columns = [places(g, size, shape, negative) for size in x.dims[batch : batch + depth]]
    return np.stack(columns, axis=-1)


@maker()
def gather_tuples(g: Graph) -> None:
    x = g.value(ANY, (1, 4))
    batch = g.int(1, x.rank - 1) if x.rank > 1 and g.chance(0.4) else 0
    g.layer("GatherND", g.pick("opset5", "opset8"), x, g.index(_tuples(g, x, batch), 0.5), batch_dims=batch)


@maker()
def scatter_tuples(g: Graph) -> None:
    x = g.value(NUMBERS, (1, 4))
    tuples = _tuples(g, x)
    updates = g.fresh((x.type,), [*tuples.shape[:-1], *x.dims[tuples.shape[-1] :]])
    version = g.pick("opset3", "opset15")
    if version == "opset3":  # any of equal indices may be the last
        flat = tuples.reshape(-1, tuples.shape[-1]) % np.array(x.dims[: tuples.shape[-1]])
        if len(np.unique(flat, axis=0)) < len(flat):
            raise Unfit("equal indices")
    g.layer("ScatterNDUpdate", version, x, g.index(tuples, 0.5), updates)


@maker()
def scatter(g: Graph) -> None:
    x = g.value(NUMBERS, (1, 4))
    axis = g.axis(x)
    size = x.dims[axis]
    chosen = g.rng.permutation(size)[: g.int(1, max(1, size))]
    shape = [*x.dims[: axis % x.rank], len(chosen), *x.dims[axis % x.rank + 1 :]]
    updates = g.fresh((x.type,), shape)
    g.layer("ScatterUpdate", "opset3", x, g.index(chosen, 0.5), updates, g.index(axis, 0.8))


@maker(2)
def scatter_elements(g: Graph) -> None:
    x = g.value(NUMBERS, (1, 4))
    axis = g.axis(x)
    if not min(x.dims):
        raise Unfit("nothing to scatter into")
    shape = [g.int(1, d) for d in x.dims]
    version = g.pick("opset3", "opset12")
    if version == "opset12":
        indices = places(g, x.dims[axis], shape)
    else:  # any of equal indices may be the last
        indices = np.argsort(g.rng.random([*shape[: axis % x.rank], x.dims[axis], *shape[axis % x.rank + 1 :]]), axis)
        indices = np.take(indices, range(shape[axis]), axis)
    g.layer("ScatterElementsUpdate", version, x, g.index(indices, 0.4), g.fresh((x.type,), shape), g.index(axis, 0.9))


@maker()
def one_hot(g: Graph) -> None:
    indices = g.fresh(("i32", "i64"), g.shape(g.int(0, 3)), 0.2, -1, 6)
    values = [g.leaf(g.array(type_, ()), 0.8) for type_ in [g.type(NUMBERS)] * 2]
    axis = g.int(-indices.rank - 1, indices.rank)
    g.layer("OneHot", g.pick("opset1", "opset16"), indices, g.index(g.int(1, 5), 0.8), *values, axis=axis)


@maker(2)
def top(g: Graph) -> None:
    """With distinct elements, because the order of equal ones is not specified in all versions."""
    shape = g.shape(g.int(1, 4))
    x = g.leaf(g.rng.permutation(int(np.prod(shape))).reshape(shape).astype(g.pick("f4", "f4", "i4", "i8", "f2")), 0.1)
    axis = g.axis(x)
    k = g.int(0 if g.chance(0.1) else min(1, x.dims[axis]), x.dims[axis])
    count = g.index(k, 0.8)
    given = {"index_element_type": g.pick("i32", "i64"), "sort": g.pick("value", "index")}
    version = g.pick("opset1", "opset3", "opset11")
    g.layer("TopK", version, x, count, axis=axis, **({"sort": given["sort"]} if version == "opset1" else given))


@maker()
def top_of_any(g: Graph) -> None:
    """Values only, because the order of equal ones is not specified."""
    x = g.value(NUMBERS, (1, 4))
    axis = g.axis(x)
    count = g.index(g.int(min(1, x.dims[axis]), x.dims[axis]), 0.9)
    made = g.layer("TopK", g.pick("opset3", "opset11"), x, count, axis=axis, sort="value", index_element_type="i32")
    g.values.remove(made[1])


@maker()
def non_zero(g: Graph) -> None:
    g.layer("NonZero", "opset3", g.value(ANY), output_type=g.pick("i32", "i64"))


@maker()
def unique(g: Graph) -> None:
    """With integers, because rounding determines equality of computed floats."""
    x = g.fresh(("i32", "i64", "f32"), g.shape(g.int(1, 3)), 0.1, -2, 2)
    axis = [g.index(g.axis(x), 1.0)] if g.chance(0.3) else []
    types = {name: g.pick("i32", "i64") for name in ("index_element_type", "count_element_type")}
    g.layer("Unique", "opset10", x, *axis, sorted=True, **types)


@maker()
def searched(g: Graph) -> None:
    x = g.value(NUMBERS, (1, 3))
    if g.chance(0.5):
        edges = g.leaf(np.sort(g.array(x.type, (g.int(0, 6),))), 0.8)
        g.layer("Bucketize", "opset3", x, edges, output_type=g.pick("i32", "i64"))
        return
    shape = [*x.dims[:-1], g.int(1, 7)]
    ordered = g.leaf(np.sort(g.array(x.type, shape if g.chance(0.5) else shape[-1:]), axis=-1), 0.5)
    g.layer("SearchSorted", "opset15", ordered, x, output_type=g.pick("i32", "i64"))


@maker()
def segments(g: Graph) -> None:
    x = g.value(NUMBERS, (1, 3))
    if not x.dims[0]:
        raise Unfit("no segments")
    ids = np.sort(g.rng.integers(0, 4, x.dims[0]))
    count = [g.index(g.int(1, 6), 0.8)] if g.chance(0.5) else []
    g.layer("SegmentMax", "opset16", x, g.index(ids, 0.5), *count)


@maker()
def tree(g: Graph) -> None:
    steps, batch, beams = g.int(1, 5), g.int(1, 3), g.int(1, 4)
    type_ = g.pick("i32", "f32")
    arrays = [g.rng.integers(0, n, (steps, batch, beams)) for n in (9, beams)] + [g.rng.integers(1, steps + 1, batch)]
    given = [g.leaf(a.astype(_NUMPY[type_]), 0.1) for a in (*arrays, np.array(g.int(0, 9)))]
    g.layer("GatherTree", "opset1", *given)


_NUMPY = {"i32": np.int32, "f32": np.float32}


@maker()
def bags(g: Graph) -> None:
    shape = g.shape(g.int(2, 3))
    if not min(shape):
        raise Unfit("no table")
    table = g.fresh(FLOATS, shape)
    kind = g.pick(np.int32, np.int64)
    count = g.int(1, 8)

    def leaf(numbers: np.ndarray, constant: float = 0.3) -> Value:
        return g.leaf(np.asarray(numbers).astype(kind), constant)

    indices = leaf(g.rng.integers(0, shape[0], count))
    default = [leaf(np.array(g.int(0, shape[0] - 1)), 0.8)] if g.chance(0.5) else []
    match g.pick("offsets", "packed", "segments"):
        case "packed":
            indices = leaf(g.rng.integers(0, shape[0], (g.int(1, 4), g.int(1, 4))))
            weights = [g.fresh((table.type,), indices.dims)] if g.chance(0.4) else []
            operation = g.pick(("EmbeddingBagPackedSum", "opset3"), ("EmbeddingBagPacked", "opset15"))
            g.layer(*operation, table, indices, *weights, **_reduction(g, operation[0], bool(weights)))
        case "segments":
            ids = leaf(np.sort(g.rng.integers(0, 4, count)))
            weights = [g.fresh((table.type,), [count])] if default and g.chance(0.5) else []
            default = default or [leaf(np.array(0), 0.8)]
            g.layer(
                "EmbeddingSegmentsSum", "opset3", table, indices, ids, leaf(np.array(g.int(4, 6)), 0.8), *default, *weights
            )
        case _:
            offsets = leaf(np.sort(np.append(0, g.rng.integers(0, count, g.int(0, 3)))))
            weights = [g.fresh((table.type,), [count])] if default and g.chance(0.5) else []
            operation = g.pick(("EmbeddingBagOffsetsSum", "opset3"), ("EmbeddingBagOffsets", "opset15"))
            more = _reduction(g, operation[0], bool(weights))
            g.layer(*operation, table, indices, offsets, *default, *weights, **more)


def _reduction(g: Graph, operation: str, weighted: bool) -> dict[str, str]:
    """Return a reduction; means have no weights."""
    if operation.endswith("Sum"):
        return {}
    return {"reduction": "sum" if weighted else g.pick("sum", "mean")}


@maker()
def sparse(g: Graph) -> None:
    rows, columns, count = g.int(1, 5), g.int(1, 5), g.int(0, 6)
    indices = np.stack([np.sort(g.rng.integers(0, rows, count)), g.rng.integers(0, columns, count)], axis=1)
    type_ = g.pick("f32", "i32", "i64")
    values = g.leaf(g.array(type_, (count,)), 0.1)
    kind = g.pick(np.int32, np.int64)
    given = [g.leaf(np.asarray(a).astype(kind), 0.2) for a in ([rows, columns], indices)]
    g.layer("SparseFillEmptyRows", "opset16", values, *given, g.leaf(g.array(type_, ()), 0.5))
