"""Whole networks, converted once and compared with OpenVINO at two sizes.

`table.NETWORKS` lists them. Some are in ``files/`` as IR and are part of every pytest run. The others are built from the
libraries' own classes, small and with random weights, if these are installed (the extra ``networks``)::

    python -m tests.conformance.models                   # all of them, and docs/networks.md
    python -m tests.conformance.models Swin regnet       # those whose names contain one of these
    pytest -n 2 tests/conformance/models --networks=all  # the same as tests
"""
