"""The command ``specops``."""

import gc


def main() -> None:
    """Run the command."""
    gc.set_threshold(100_000)  # a conversion creates many objects, but few cycles

    from converters.cli.app import app

    app()
