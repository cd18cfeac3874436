"""Folders of models, loaded by their hosts; see ``__main__.py``."""

ALL_LEFT_OUT = 2
"""The exit status of ``python -m tests.folders`` if no model can be exported, or none of their hosts is installed."""
