"""The `amqpscope` command: its subcommands, and how any of them ends."""

import gc
import os
import sys
from typing import Annotated

import typer

from amqpscope import __version__
from amqpscope.cli.read import read
from amqpscope.cli.status import Status
from amqpscope.cli.summary import summary
from amqpscope.errors import AmqpscopeError

__all__ = ["app", "main"]

app = typer.Typer(
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="See what AMQP peers really say to each other: decode recorded AMQP 1.0 traffic.",
    epilog="Exit status: 0 fine, 2 a failure, 3 no AMQP to read, 130 interrupted.",
)
app.command()(read)
app.command()(summary)


def version_line() -> str:
    """Version, and whether the hot path runs compiled."""
    from dissectors import wire

    compiled = not (wire.__file__ or "").endswith(".py")
    how = "compiled" if compiled else "not compiled"
    python = ".".join(str(part) for part in sys.version_info[:3])
    return f"amqpscope {__version__} ({how}, Python {python})"


def _version(wanted: bool) -> None:
    if wanted:
        print(version_line())
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """See what AMQP peers really say to each other: decode recorded AMQP 1.0 traffic."""


def main() -> None:
    """Run the command line. Whatever happens ends in one line on standard error and an exit status."""
    for stream in (sys.stdout, sys.stderr):
        # Text from the wire must not fail on an output that cannot show it.
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")
    # Millions of short-lived objects, hardly a cycle among them: the collector would look through all
    # that the imports made again and again, a third of the run, to find nothing.
    gc.freeze()
    gc.set_threshold(100_000, 20, 100)
    sys.exit(_run())


def _run() -> int:
    try:
        result = app(sys.argv[1:] or ["--help"], standalone_mode=False)
        sys.stdout.flush()
    except typer.TyperException as error:
        context = getattr(error, "ctx", None)
        command = context.command_path if context is not None else "amqpscope"
        return _failed(f"{error.format_message().rstrip('.')} (see '{command} --help')")
    except (KeyboardInterrupt, typer.Abort):
        _leave_stdout()
        return Status.INTERRUPTED
    except BrokenPipeError:
        # Whoever read our output has seen enough.
        _leave_stdout()
        return Status.FINE
    except AmqpscopeError as error:
        return _failed(str(error))
    except OSError as error:
        return _failed(f"{error.filename or 'output'}: {error.strerror or error}")
    return result if isinstance(result, int) else Status.FINE


def _failed(text: str) -> int:
    from amqpscope.cli.output import say

    try:
        sys.stdout.flush()
    except OSError:
        _leave_stdout()
    say(text)
    return Status.FAILURE


def _leave_stdout() -> None:
    """Let the interpreter's own flush at exit go nowhere: the output is closed, or to be left as it is."""
    try:
        devnull = os.open(os.devnull, os.O_WRONLY)
        os.dup2(devnull, sys.stdout.fileno())
    except (OSError, ValueError):
        pass
