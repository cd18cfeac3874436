"""Converted models in other programs. Tests are skipped with a reason if the program is not installed."""
