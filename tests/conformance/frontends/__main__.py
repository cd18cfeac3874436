"""Compare all recorded models, and record the results for docs/convert.md::

python -m tests.conformance.frontends [FORMAT ...]
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from tests.conformance.frontends.check import check
from tests.conformance.frontends.model import FILES, FORMATS, recorded

RESULTS = FILES.with_name("results.json")


def main() -> int:
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for kind in sys.argv[1:] or FORMATS:
        results[kind] = {}
        for model in recorded(kind):
            with tempfile.TemporaryDirectory() as folder:
                outcomes = [check(model, Path(folder), kernels) for kernels in ("native", "none")]
            results[kind][model.name] = next((o for o in outcomes if o != "agrees"), "agrees")
            print(f"{kind} {model.name}: {results[kind][model.name]}", flush=True)
        RESULTS.write_text(json.dumps(results, indent=1) + "\n")
    return int(any(outcome != "agrees" for models in results.values() for outcome in models.values()))


if __name__ == "__main__":
    sys.exit(main())
