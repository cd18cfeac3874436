"""Hostile files and nodes: the converter and the kernels give a result or a clear error, quickly and with little memory.

``python -m tests.fuzz ir|networks|language|deep|nodes|sanitized|python --minutes 30`` runs for a given time. A sample with a
fixed seed is part of ``pytest``, as is `corpus`, the cases that once failed. `ir` changes IR files, `deep` repeats layers,
and `nodes` changes the nodes of the domain's operators. `engine` runs them in separate processes.
"""
