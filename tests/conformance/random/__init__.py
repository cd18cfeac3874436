"""Random models against OpenVINO.

``python -m tests.conformance.random --count 100000 --seed 1`` runs as many as one likes; a sample, fixed by a seed, is part
of ``pytest``. `graph` and the families in `layers` make a `recipe.Recipe`, `judge` says what became of it, `explain` which
layer is to blame.
"""
