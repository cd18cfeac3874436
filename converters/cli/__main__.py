"""``python -m converters.cli``: the command ``specops``."""

from converters.cli import main

if __name__ == "__main__":  # processes of its own import it, too
    main()
