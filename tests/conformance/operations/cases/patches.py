"""Images and their patches: ExtractImagePatches, ReorgYolo, Col2Im."""

from __future__ import annotations

import numpy as np

from tests.conformance.operation_models import dynamic, layer_case, mixed, static, unranked

I32, I64, U8, F16, F32, F64 = np.int32, np.int64, np.uint8, np.float16, np.float32, np.float64


def _counted(*shape, dtype=F32):
    return np.arange(1, int(np.prod(shape)) + 1).reshape(shape).astype(dtype)


def _patches():
    def case(name, x, sizes, strides, rates, pad):
        attributes = {"sizes": sizes, "strides": strides, "rates": rates, "auto_pad": pad}
        return layer_case("ExtractImagePatches", "opset3", "extract_image_patches", name, [x], attributes)

    image = static(_counted(1, 1, 10, 10))
    yield case("valid", image, [3, 3], [5, 5], [1, 1], "valid")
    yield case("same-upper", image, [4, 4], [9, 9], [1, 1], "same_upper")
    yield case("same-lower", image, [4, 3], [9, 4], [1, 2], "same_lower")
    yield case("rates", image, [3, 3], [5, 5], [2, 2], "valid")
    yield case("channels", static(_counted(1, 2, 5, 5)), [2, 2], [3, 3], [1, 1], "valid")
    images = dynamic(_counted(1, 2, 5, 4), _counted(2, 2, 3, 7), dims=[-1, 2, -1, -1])
    yield case("dynamic", images, [2, 3], [1, 2], [2, 1], "same_upper")
    rows = dynamic(_counted(1, 2, 7, 8), dims=[1, 2, 7, -1])
    yield case("side-by-side", rows, [3, 3], [3, 3], [1, 1], "same_lower")
    yield case("side-by-side-valid", rows, [3, 3], [3, 3], [1, 1], "valid")
    yield case("large", static(_counted(1, 2, 12, 12)), [8, 9], [3, 2], [1, 1], "same_upper")
    yield case("i32", static(_counted(2, 3, 4, 4, dtype=I32)), [2, 1], [2, 3], [1, 1], "valid")

    def transposed(ops, x, **attributes):
        return ops.extract_image_patches(ops.transpose(x, np.array([0, 3, 1, 2])), **attributes)

    attributes = {"sizes": [1, 3], "strides": [2, 3], "rates": [1, 1], "auto_pad": "same_lower"}
    image = static(_counted(1, 3, 2, 4))
    yield layer_case("ExtractImagePatches", "opset3", transposed, "of-a-transposed-image", [image], attributes)


def _reorgs():
    def case(name, x, stride):
        return layer_case("ReorgYolo", "opset2", "reorg_yolo", name, [x], {"stride": [stride]})

    yield case("stride-2", static(_counted(2, 8, 4, 6)), 2)
    yield case("stride-1", static(_counted(1, 3, 2, 2)), 1)
    yield case("stride-3", static(_counted(1, 18, 6, 3)), 3)
    yield case("dynamic", dynamic(_counted(1, 4, 2, 4), _counted(3, 4, 6, 2), dims=[-1, 4, -1, -1]), 2)
    yield case("odd-channels", static(_counted(2, 11, 4, 2)), 2)
    yield case("any-channels", dynamic(_counted(2, 6, 2, 4), _counted(1, 8, 2, 2)), 2)
    yield case("f16", static(_counted(1, 4, 2, 2, dtype=F16)), 2)


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


CASES = [*_patches(), *_reorgs(), *_col2im()]
