"""docs/model-api.md: networks with Model API's wrappers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from docs.parts.markdown import recorded, table


def rows() -> Iterator[str]:
    """Networks with Model API's wrappers, and the comparison of their results."""
    results = recorded("tests/converters/model_api/results.json")
    rows = []
    for name, found in sorted(results.items(), key=lambda item: (item[1]["model_type"].lower(), item[0])):
        runs = [found[runtime] for runtime in ("onnxruntime", "onnxruntime-web") if runtime in found]
        ious = [f"{run['iou']:.5f}" if run["iou"] is not None else "-" for run in runs]
        equal = ["yes" if run["labels"] else "no" for run in runs]
        apart = [
            ", ".join(f"`{one.split(': ')[0].partition('/')[2]}` by {one.split(': ')[1]}" for one in run["wrong"])
            for run in runs
        ]
        images = str(max(run["images"] for run in runs))
        rows.append((found["model_type"], f"`{name}`", images, *(_pair(cells) for cells in (ious, equal, apart))))
    yield from table(("`model_type`", "network", "images", "least IoU", "labels equal", "numbers that differ"), rows)


def _pair(cells: Sequence[str]) -> str:
    """Return one text if both runtimes have the same, else both."""
    return cells[0] if len(set(cells)) == 1 and len(cells) == 2 else " / ".join(cells)
