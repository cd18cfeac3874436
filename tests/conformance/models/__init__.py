"""Whole networks, converted once and run at two sizes against OpenVINO.

`table.NETWORKS` lists them. A few lie in ``files/`` as IR and are part of every run of pytest; the others are made from the
libraries' own classes, small and with random weights, where those are installed (the extra ``networks``)::

    python -m tests.conformance.models                   # all of them, and docs/networks.md
    python -m tests.conformance.models Swin regnet       # those whose names contain one of these
    pytest -n 2 tests/conformance/models --networks=all  # the same as tests
"""
