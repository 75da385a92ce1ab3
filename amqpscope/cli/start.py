"""Where the command begins: completion is answered before anything of the program is loaded."""

import gc
import os
import sys

__all__ = ["main"]


def main() -> None:
    """Run the command line and leave with its exit status, or answer a shell that wants to complete it."""
    try:
        if "_AMQPSCOPE_COMPLETE" in os.environ:
            from amqpscope.cli.completion import main as complete

            complete()
        from amqpscope.input.garbage import calm_collector

        calm_collector()  # before the imports, which make many objects
        from amqpscope.cli.main import run

        status = run(sys.argv[1:])
        if "duckdb" not in sys.modules:  # at the end, it complains of all that is left of it
            gc.freeze()  # the process ends and returns all memory: nothing has to be collected first
    except KeyboardInterrupt:  # before or behind `run`, which reports those that come meanwhile
        status = 130
    sys.exit(status)
