"""The `amqpscope` command: its subcommands, and how any of them ends."""

import enum
import os
import sys
from collections.abc import Callable
from functools import cache
from typing import Annotated

import typer
from typer.main import get_command

from amqpscope import __version__
from amqpscope.cli.color import Color, choose_color, display_apart
from amqpscope.cli.commands import GROUPS, Commands
from amqpscope.cli.output import leave_stdout, say
from amqpscope.cli.pager import NO_PAGER, paging
from amqpscope.cli.status import Status
from amqpscope.errors import AmqpscopeError
from amqpscope.report.printable import printable
from amqpscope.rules.earlier_names import take_renamed

__all__ = ["app", "run"]

_ABOUT = (
    "See what AMQP peers send to each other, and which peer breaks the protocol. amqpscope decodes and "
    "checks AMQP 1.0 and 0-9-1 traffic from a capture file or a network interface."
)

app = typer.Typer(
    cls=Commands,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help=_ABOUT,
    epilog="Use `amqpscope COMMAND --help` for one command.",
)


def version_line() -> str:
    """Version, and whether the hot path runs compiled."""
    from dissectors import wire

    compiled = not (wire.__file__ or "").endswith(".py")
    how = "compiled" if compiled else "not compiled"
    python = ".".join(str(part) for part in sys.version_info[:3])
    return f"amqpscope {__version__} ({how}, Python {python})"


class Shell(enum.StrEnum):
    """Shells that can complete command lines."""

    bash = "bash"
    zsh = "zsh"
    fish = "fish"


def _version(wanted: bool) -> None:
    if wanted:
        print(version_line())
        raise typer.Exit


def _show_completion(shell: Shell | None) -> None:
    if shell is not None:
        from amqpscope.cli.completion import script

        print(script(shell.value), end="")
        raise typer.Exit


def _install_completion(shell: Shell | None) -> None:
    if shell is not None:
        from amqpscope.cli.completion import install

        print("\n".join(printable(line) for line in install(shell.value)))
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
    color: Annotated[
        Color,
        typer.Option(
            "--color",
            metavar="always|never|auto",
            show_default=False,
            help=(
                "Choose when the output has colours: always, never or auto. With --color auto (the "
                "default), only output on a terminal has colours. The option may also follow the command."
            ),
        ),
    ] = Color.auto,
    no_pager: Annotated[
        bool,
        typer.Option(
            NO_PAGER,
            help=(
                "Use no pager for long output on a terminal. By default, amqpscope uses the pager that the "
                "environment variable AMQPSCOPE_PAGER or PAGER names. If neither variable is set, "
                "amqpscope uses `less`. The option may also follow the command."
            ),
        ),
    ] = False,
    show_completion: Annotated[
        Shell | None,
        typer.Option(
            "--show-completion",
            metavar="bash|zsh|fish",
            callback=_show_completion,
            is_eager=True,
            help="Print the completion script for this shell.",
        ),
    ] = None,
    install_completion: Annotated[
        Shell | None,
        typer.Option(
            "--install-completion",
            metavar="bash|zsh|fish",
            callback=_install_completion,
            is_eager=True,
            help="Install the completion script for this shell.",
        ),
    ] = None,
) -> None:
    """See what AMQP peers really say to each other, and who breaks the protocol."""
    choose_color(color)


def run(arguments: list[str]) -> int:
    """Run the command line; give its exit status. Whatever fails ends in one line on standard error."""
    # Before pyarrow is loaded: its own allocator takes longer, and keeps memory that a watch has freed.
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    if not _prepare_streams():
        return _failed("standard output is closed")
    with paging(arguments):
        return _run(arguments)


def _run(arguments: list[str]) -> int:
    try:
        if not arguments or arguments in [[group] for group in GROUPS]:
            arguments = [*arguments, "--help"]
        display, others = display_apart(arguments)
        result = _command()([*display, *others], prog_name="amqpscope", standalone_mode=False)
        sys.stdout.flush()
    except typer.TyperException as error:
        return _failed(_misused(error, arguments))
    except (KeyboardInterrupt, typer.Abort):
        try:
            sys.stdout.flush()
        except OSError:
            leave_stdout()
        return Status.INTERRUPTED
    except (BrokenPipeError, SystemExit):
        # Whoever read our output has seen enough: typer leaves with 1 then, which would mean findings.
        leave_stdout()
        return Status.FINE
    except AmqpscopeError as error:
        return _failed(str(error))
    except OSError as error:
        return _failed(f"{error.filename or 'standard output'}: {error.strerror or error}")
    except MemoryError:
        raise
    except Exception as error:
        from amqpscope.model.note import mishap

        note = mishap(error, 0, 0, None, "this run")
        return _failed(f"{note.code}: {note.detail}")
    finally:
        for text in take_renamed():
            say(text)
    return result if isinstance(result, int) else Status.FINE


@cache
def _command() -> Callable[..., object]:
    """The commands with all their options. To make them takes longer than to read a small capture."""
    return get_command(app)


def _prepare_streams() -> bool:
    """Make outputs take whatever is written, strange characters as escapes. False if there is no output."""
    is_open = sys.stdout is not None
    if not is_open:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")
    return is_open


def _misused(error: typer.TyperException, arguments: list[str]) -> str:
    """What is wrong with a command line, and what helps."""
    from amqpscope.cli.advice import advice

    context = getattr(error, "ctx", None)
    path = context.command_path if context is not None else "amqpscope"
    command = path.removeprefix("amqpscope").strip()
    words = [word for word in display_apart(arguments)[1] if not word.startswith("-")]
    words = words[len(command.split()) :]
    option = getattr(error, "option_name", None)
    unknown = type(error).__name__ == "NoSuchOption"
    # An option with a wrong value, or without one, says nothing of the words.
    misused = getattr(error, "param", None) is not None or (option and not unknown)
    helps = "" if misused else advice(command, str(option) if unknown else "", words)
    reason = str(getattr(error, "message", "")) if helps and unknown else error.format_message()
    reason = reason.replace("Value error, ", "").partition(" Did you mean")[0].rstrip(".")
    return f"{reason}; {helps}" if helps else f"{reason} (see '{path} --help')"


def _failed(text: str) -> int:
    from amqpscope.cli.output import say

    try:
        sys.stdout.flush()
    except OSError:
        leave_stdout()
    say(text)
    return Status.FAILURE
