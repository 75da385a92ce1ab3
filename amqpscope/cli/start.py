"""Where the command begins: completion is answered before anything of the program is loaded."""

import os

__all__ = ["main"]


def main() -> None:
    """Run the command line, or answer a shell that wants to complete it."""
    if "_AMQPSCOPE_COMPLETE" in os.environ:
        from amqpscope.cli.completion import main as complete

        complete()
    from amqpscope.cli.main import main as command

    command()
