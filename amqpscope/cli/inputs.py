"""The captures that a command line names: files, standard input, and directories of files."""

import enum
import os
import re
import stat
from collections.abc import Iterable, Iterator
from typing import Annotated

import typer

from amqpscope.capture.source import is_capture, only_once, shown_name
from amqpscope.cli.option_groups import OptionGroup
from amqpscope.cli.output import say
from amqpscope.cli.status import Status
from amqpscope.errors import CaptureError, FilterError
from amqpscope.input.ahead import size_of
from amqpscope.input.capture import Capture, CaptureOptions, together
from amqpscope.input.key_log import tls_secrets
from amqpscope.layers.secrets import Secrets
from amqpscope.policy.configuration import Configuration
from amqpscope.report.outcome import nothing_to
from dissectors.amqp10_draft2011.names import DRAFT_2011, FINAL_2011

__all__ = [
    "CaptureArgument",
    "DecodingOptions",
    "Dialect",
    "InputOptions",
    "JobsOption",
    "Paths",
    "ReadingOptions",
    "capture_status",
    "is_standard_output",
    "refuse_repeated",
    "refuse_taken",
    "same_file",
]

Paths = Annotated[
    list[str],
    typer.Argument(
        metavar="PATH",
        help="Read these capture files (pcap or pcapng, also compressed with gzip or zstd), directories of "
        "capture files, or frame logs of Qpid Proton or rhea. Give - to read standard input.",
    ),
]
"""Arguments of the commands that read captures."""

JobsOption = Annotated[
    str | None,
    typer.Option(
        "--jobs",
        "-j",
        metavar="N|auto",
        show_default=False,
        help="Read large captures with N processes. The output does not depend on N. With --jobs auto, "
        "amqpscope starts as many processes as there are processors. [default: 1]",
    ),
]
"""Option of the commands that can read in several processes: see `amqpscope.input.jobs`."""


class Through(enum.StrEnum):
    """What else can take packets apart."""

    tshark = "tshark"


class Dialect(enum.StrEnum):
    """Dialects of AMQP 1.0 that announce themselves alike."""

    final = FINAL_2011
    draft2011 = DRAFT_2011


_CALLED_SO = r"\.(pcap|pcapng|cap)(\.(gz|zst))?$"

_NAMED = 5
"""Files that are called as captures and are none, of which the names are said."""


class CaptureArgument:
    """One capture to be opened: a file, or several that are one. `name`: what it is called until then."""

    def __init__(self, paths: list[str], refusal: str = "") -> None:
        self.paths = paths
        self.via = ""
        self.dialect = ""
        self.secrets: Secrets | None = None
        self.secret_files: list[str] = []
        self.refusal = refusal
        self.name = together(list(map(shown_name, paths)))

    @property
    def files(self) -> list[str]:
        """All that is read for it: its own files, and those that have its secrets."""
        return [*self.paths, *self.secret_files]

    @property
    def size(self) -> int:
        """Octets of its files, 0 if it is unknown."""
        return 0 if self.refusal else size_of(self.paths)

    def open(self, options: CaptureOptions) -> Capture:
        """The capture. Raises CaptureError."""
        if self.refusal:
            raise CaptureError(self.refusal)
        options = options._replace(dialect=self.dialect, secrets=self.secrets)
        return Capture(self.paths[0] if len(self.paths) == 1 else self.paths, options, via=self.via)


class DecodingOptions(OptionGroup):
    """How the octets of a connection are decoded."""

    dialect: Annotated[
        Dialect | None,
        typer.Option(
            "--dialect",
            metavar="final|draft2011",
            show_default=False,
            help="Decode AMQP 1.0 by the final specification (final) or by the draft of April 2011 "
            "(draft2011). By default, amqpscope recognizes the version of each connection by the "
            "first frames.",
        ),
    ] = None
    tls_keylog: Annotated[
        list[str] | None,
        typer.Option(
            "--tls-keylog",
            metavar="FILE",
            show_default=False,
            help="Decrypt TLS with the secrets in this file. Many programs write a file with their TLS "
            "secrets if the environment variable SSLKEYLOGFILE is set. The option may be repeated.",
        ),
    ] = None
    tls_key: Annotated[
        list[str] | None,
        typer.Option(
            "--tls-key",
            metavar="FILE",
            show_default=False,
            help="Decrypt TLS 1.0 to 1.2 with the server's private key in this PEM file. A private key can "
            "decrypt only connections with RSA key exchange (cipher suites TLS_RSA_WITH_...). If the "
            "key is encrypted, set the environment variable AMQPSCOPE_TLS_KEY_PASSPHRASE to the "
            "passphrase of the key. The option may be repeated.",
        ),
    ] = None

    def secrets(self, configuration: Configuration | None = None, growing: bool = False) -> Secrets | None:
        """What the key logs and private keys have that the options name, or if an option is not given the
        configuration; None without any. growing: the key logs are still written. Raises FilterError.
        """
        return tls_secrets(*self._files(configuration), growing)

    def files(self, configuration: Configuration | None = None) -> list[str]:
        """The files that `secrets` reads."""
        logs, keys = self._files(configuration)
        return [*logs, *keys]

    def _files(self, configuration: Configuration | None) -> tuple[list[str], list[str]]:
        """The key logs, and the private keys."""
        logs, keys = self.tls_keylog or [], self.tls_key or []
        if configuration is not None:
            values = configuration.values
            logs = logs or [configuration.path(name) for name in values.get("tls-keylog", [])]
            keys = keys or [configuration.path(name) for name in values.get("tls-key", [])]
        return logs, keys


class InputOptions(OptionGroup):
    """How captures are read."""

    merge: Annotated[
        bool,
        typer.Option(
            "--merge",
            help="Merge all files into one capture, with the packets ordered by time. Use this option for "
            "the files of a rotated capture, or for captures from several points of the network.",
        ),
    ] = False
    via: Annotated[
        Through | None,
        typer.Option(
            "--via",
            metavar="tshark",
            help="Let tshark decode the packets. Use this option if amqpscope does not support the link "
            "layer of the capture. The option is slow, and needs pyshark and tshark.",
        ),
    ] = None
    decoding: DecodingOptions

    def captures(self, paths: list[str], configuration: Configuration | None = None) -> list[CaptureArgument]:
        """What is to be read for these paths, in their order; with --merge all of it as one capture.

        A directory stands for the captures in it and below it, by name. How many other files there are in it
        is said, and which of them are called as if they were captures. configuration: has the files of TLS
        secrets that no option names. Raises FilterError for what makes no sense on a command line.
        """
        refuse_repeated([*paths, *self.decoding.files(configuration)])
        secrets = self.decoding.secrets(configuration)
        once = next(filter(only_once, paths), "") if self.via else ""
        if self.via and (self.merge or once):
            other = "--merge" if self.merge else once
            raise FilterError(f"--via {self.via}: reads only single files; cannot be combined with {other}")
        found: list[CaptureArgument] = []
        for path in paths:
            if path != "-" and os.path.isdir(path):
                found += _in_directory(path)
            else:
                if path != "-" and not os.path.exists(path):
                    _refuse_mistaken(path)
                found.append(CaptureArgument([path]))
        if self.merge:
            refusal = next((one.refusal for one in found if one.refusal), "")
            found = [CaptureArgument([one.paths[0] for one in found], refusal)]
        for one in found:
            one.via = self.via or ""
            one.secrets = secrets
            one.secret_files = self.decoding.files(configuration)
            one.dialect = self.decoding.dialect or ""
        return found


class ReadingOptions(InputOptions):
    """How captures are read by the commands that only show them."""

    allow_empty: Annotated[
        bool,
        typer.Option(
            "--allow-empty",
            help="Exit with status 0 even if the capture has neither AMQP 1.0 nor AMQP 0-9-1.",
        ),
    ] = False


def _refuse_mistaken(path: str) -> None:
    """Raises FilterError for a path without a file, if something else than a file was meant."""
    from amqpscope.cli.advice import mistaken_path  # knows the other commands

    if helps := mistaken_path(path):
        raise FilterError(f"{path}: there is no such file; {helps}")


def _in_directory(directory: str) -> list[CaptureArgument]:
    """The captures in a directory and below it, and what could not be looked into."""
    found: list[CaptureArgument] = []
    others = 0
    called_so: list[str] = []
    for path, problem in _files(directory):
        if problem:
            found.append(CaptureArgument([path], f"{path}: {problem}"))
        elif os.path.isfile(path) and is_capture(path):
            found.append(CaptureArgument([path]))
        else:
            others += 1
            if re.search(_CALLED_SO, path, re.IGNORECASE) and len(called_so) < _NAMED:
                called_so.append(path)
    if not found:
        count = f"none of its {others} files is a capture" if others else "the directory is empty"
        return [CaptureArgument([directory], f"{directory}: no captures in this directory ({count})")]
    if others:
        named = f" ({', '.join(called_so)})" if called_so else ""
        what = "1 file that is not a capture" if others == 1 else f"{others} files that are not captures"
        say(f"{directory}: skipped {what}{named}")
    return found


def _files(directory: str) -> Iterator[tuple[str, str]]:
    """Path of everything in a directory and below it that is no directory, by name.

    The second is why a directory cannot be looked into, "" otherwise. Links to directories are not followed.
    """
    waiting = [(directory, True)]
    while waiting:
        path, is_directory = waiting.pop()
        if not is_directory:
            yield path, ""
            continue
        try:
            with os.scandir(path) as listing:
                entries = sorted(
                    ((entry.path, entry.is_dir(follow_symlinks=False)) for entry in listing), reverse=True
                )
        except OSError as error:
            yield path, error.strerror or str(error)
            continue
        waiting += entries


def same_file(path: str, other: str) -> bool:
    """Whether two paths, `-` being standard input, are one file; if one is not there yet, by name."""
    try:
        return os.path.samestat(_status(path), _status(other))
    except OSError:
        return os.path.realpath(path) == os.path.realpath(other)


def is_standard_output(path: str) -> bool:
    """Whether what is written to a path comes out of standard output: `-`, or a name like `/dev/stdout`."""
    try:
        status = os.fstat(1)
        # All that is written to /dev/null is lost, and nothing is mixed there.
        mixes = not stat.S_ISCHR(status.st_mode) or os.isatty(1)
        return path == "-" or (mixes and os.path.samestat(os.stat(path), status))
    except (OSError, ValueError):
        return path == "-"


def refuse_repeated(paths: Iterable[str]) -> None:
    """Raises FilterError for what can be read only once, if a run is to read it twice, under any name."""
    met: list[str] = []
    for path in filter(only_once, paths):
        if any(same_file(path, other) for other in met):
            raise FilterError(f"{'- (standard input)' if path == '-' else path} can be read only once")
        met.append(path)


def refuse_taken(option: str, path: str, taken: Iterable[str]) -> None:
    """Raises FilterError for a file to be written that is one of those which the run reads or writes."""
    if any(same_file(path, other) for other in taken):
        raise FilterError(f"{option} {path}: this run already reads or writes this file")


def _status(path: str) -> os.stat_result:
    return os.fstat(0) if path == "-" else os.stat(path)


def capture_status(capture: Capture, allow_empty: bool, traces: bool = False) -> Status:
    """What a capture read to its end amounts to; says so if there was nothing to read.

    traces: the messages of a broker's log were shown, if it is one.
    """
    if capture.failed:
        return Status.FAILURE
    if traces and capture.traced:
        return Status.FINE
    nothing = nothing_to(capture, "read")
    if not nothing:
        return Status.FINE
    say(f"{capture.name}: {nothing}")
    return Status.FINE if allow_empty else Status.NO_AMQP
