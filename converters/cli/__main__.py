"""``python -m converters.cli``: the command ``specops``."""

from converters.cli import main

main()
