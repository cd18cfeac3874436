"""The command ``specops``."""


def main() -> None:
    """The command's entry point."""
    from converters.cli.app import app

    app()
