"""Hostile files and nodes: the converter and the kernels give an answer or a clear error, soon and in little memory.

``python -m tests.fuzz ir|nodes|sanitized|python --minutes 30`` for as long as one likes; a sample, fixed by a seed, is part
of ``pytest``, and so is `corpus`: what once failed. `ir` changes IR files, `nodes` the nodes of the domain's operators;
`engine` runs either in processes of their own.
"""
