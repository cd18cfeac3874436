"""The command ``specops``."""


def main() -> None:
    """Run the command."""
    from converters.cli.app import app

    app()
