"""Random models against OpenVINO.

``python -m tests.conformance.random --count 100000 --seed 1`` runs any number of models; a sample with a fixed seed is part
of ``pytest``. `graph` and the families in `layers` create a `recipe.Recipe`, `judge` compares it, and `explain` finds the
layer that causes a difference.
"""
