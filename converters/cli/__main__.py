"""``python -m converters.cli``: the command ``specops``."""

from converters.cli import main

if __name__ == "__main__":  # child processes import this module, too
    main()
