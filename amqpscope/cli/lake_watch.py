"""`amqpscope pipeline watch`: a lake that follows a directory into which captures are written."""

import contextlib
import datetime
import functools
import threading
import time
from typing import TYPE_CHECKING, Annotated

import typer

from amqpscope.cli.inputs import DecodingOptions
from amqpscope.cli.interruptible import cancel_spark, interruptible
from amqpscope.cli.judging import NewFindingOptions, RuleOptions, given_of, today
from amqpscope.cli.option_groups import with_options
from amqpscope.cli.output import say
from amqpscope.cli.quantities import delay, duration
from amqpscope.cli.spark_options import (
    Configuration,
    FreshState,
    Master,
    SetBy,
    Tag,
    Verbose,
    WantedTables,
    WithJson,
    chosen_tables,
    need_spark,
    spark_session,
)
from amqpscope.cli.status import Status
from amqpscope.policy.policy import Policy
from amqpscope.report.printable import printable
from dissectors.wording import count

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from amqpscope.pipeline.appending import Addition
    from amqpscope.pipeline.watching import Watch, WatchedBatch

__all__ = ["WATCH_EPILOG", "left_out", "watch"]

WATCH_EPILOG = """\b
DIR is a directory into which tcpdump -G, -C or -W, dumpcap -b, or another
program writes captures. First, the command adds all captures that are in DIR.
Then the command searches every 10 seconds for files that are new or have
grown, and adds them as `run --append` does. Each time, all rows are added in
one step. If a program is still writing a file, the file is read up to its
last complete packet. If a capture set grows again, only its new packets are
read, also by the next `watch` and the next `run --append`. If nothing is new,
nothing is written. If the command was killed, start it again: no row is lost,
and no row is added twice.

\b
Ctrl-C or SIGTERM ends the command after the captures that are being added and
those that were read since. A second Ctrl-C or SIGTERM ends the command at
once, without these captures. While the command runs, no other command can
write to LAKE. All commands can read LAKE.

\b
Examples:
  amqpscope pipeline watch /var/captures --out lake
  amqpscope pipeline watch /var/captures --out lake --set-by '(tap-[0-9]+)_'
  amqpscope pipeline watch /var/captures --out lake --once

\b
Exit status: 0 ended by --once, Ctrl-C or SIGTERM, 2 a failure.
"""

_HOUR = 3600 * 10**9

_QUIET_LINE = 60.0
"""Seconds after which a line is printed although nothing is new."""

_TRIES = 3
"""How often one look is tried if files are overwritten meanwhile."""

_WRITTEN = 2.0
"""Seconds since the last change of a file in which somebody seems to be writing to it."""

_READ_ON_EVERY = 1.0
"""Seconds after which files that are followed are read on while the next look is waited for."""

_SLOW = 3
"""A batch that takes so many times the time between two looks is slow."""

_SLOW_BATCHES = 4
"""So many slow batches that analyse whole sets are reported: the first two of a set do so always."""

_STOP = threading.Event()

_WATCHES: "list[Watch]" = []
"""The watch that is at work, if any."""


def _cancel() -> None:
    """End what a batch waits for."""
    cancel_spark()
    for watched in _WATCHES[:]:
        watched.cancel()


@functools.partial(interruptible, cancel=_cancel, ask=_STOP.set)
@with_options
def watch(
    *,
    directory: Annotated[
        str, typer.Argument(metavar="DIR", help="Watch this directory and its subdirectories.")
    ],
    out: Annotated[str, typer.Option(metavar="LAKE", help="Write the tables to this directory or URL.")],
    every: Annotated[
        str,
        typer.Option(
            "--every",
            metavar="TIME",
            help="Set the time from the beginning of one search for new captures to that of the next one. If "
            "adding captures takes longer, the next search begins at once.",
        ),
    ] = "10s",
    lateness: Annotated[
        str,
        typer.Option(
            "--lateness",
            metavar="TIME",
            help="Wait this long after a new file was first seen before reading it, so that files which "
            "arrive later, but begin earlier, are read before it. For files that are in DIR at the start, "
            "count the time since the last change of the file; with --once, leave out files for which this "
            "time is too short.",
        ),
    ] = "0s",
    once: Annotated[
        bool, typer.Option("--once", help="Add the captures that are in DIR now, and exit.")
    ] = False,
    keep: Annotated[
        str,
        typer.Option(
            "--keep",
            metavar="TIME",
            help="Delete a data file when the tables have not used it for this time (rounded up to hours), "
            "as `pipeline vacuum` does. Until then, queries with --as-of can read the earlier state of "
            "the tables.",
        ),
    ] = "1h",
    master: Master = None,
    set_by: SetBy = "directory",
    wanted: WantedTables = "",
    with_json: WithJson = False,
    tag: Tag = None,
    fresh_state: FreshState = False,
    configuration: Configuration = None,
    findings: NewFindingOptions,
    rules: RuleOptions,
    decoding: DecodingOptions,
    verbose: Verbose = False,
) -> int:
    """Watch a directory, and add its captures to tables while they are written."""
    need_spark()
    from amqpscope.pipeline import session
    from amqpscope.pipeline.analysis import Analysis
    from amqpscope.pipeline.capture_set import CaptureSet
    from amqpscope.pipeline.lake import Lake
    from amqpscope.pipeline.planner import make_plan, pool_plan
    from amqpscope.pipeline.pool import Pool
    from amqpscope.pipeline.tags import tags_of
    from amqpscope.pipeline.watching import Watch, WatchTerms

    given = given_of(findings, rules)
    settings = rules.configuration()

    def policy() -> Policy:
        return Policy(settings, given, today())

    chosen = chosen_tables(wanted, policy())
    pause = duration("--every", every) / 1e9
    waiting = delay("--lateness", lateness) / 1e9
    hours = -(-duration("--keep", keep) // _HOUR)
    dialect = decoding.dialect or ""
    # What a set is decrypted with may come later than its packets.
    follow = decoding.secrets(settings) is None
    tags = tags_of(tag or [])
    terms = WatchTerms(
        *(set_by, chosen, bool(wanted), policy, dialect, with_json, hours, tags, follow),
        at_once=once and not (master or configuration),
        written=0 if once else _WRITTEN,
        fresh=fresh_state,
        lateness=waiting,
        once=once,
    )
    spark: SparkSession | None = None
    with contextlib.ExitStack() as opened:
        # Not before: who asks to stop while this begins is heard, too.
        opened.callback(_STOP.clear)

        def started() -> "SparkSession":
            nonlocal spark
            if spark is None:
                spark = opened.enter_context(spark_session(master, verbose, configuration))
            return spark

        def analysis(sets: list[CaptureSet]) -> Analysis:
            if not sets:
                return Analysis(Pool(1), pool_plan([], 1), None, [directory], set_by)
            secrets = decoding.secrets(settings, growing=True)
            plan = make_plan(sets, session.cores(started()))
            return Analysis(started(), plan, secrets, [directory], set_by)

        lake = Lake(out)
        watched = Watch(directory, lake, terms, analysis)
        lake.hold()
        opened.callback(lake.release)
        opened.callback(_close, watched)
        _WATCHES.append(watched)
        opened.callback(_WATCHES.clear)
        if not once:
            started()  # takes seconds, which the first captures need not wait for
        _follow(watched, lake.name, pause, once)
    return Status.FINE


def _close(watched: "Watch") -> None:
    """End the processes, when their states are kept."""
    for line in watched.close():
        say(line)


def _follow(watched: "Watch", name: str, pause: float, once: bool) -> None:
    """Look and add until somebody asks to stop, and once more for what was read ahead. pause: seconds from
    the beginning of a look to that of the next one, which begins at once if adding took longer.
    """
    from amqpscope.pipeline.failure import FilesChanged

    said: set[str] = set()
    batches = tries = 0
    slow = 0
    line_at = time.monotonic()
    state = "the lake has no captures yet"
    again = False  # the last look has failed
    while not _STOP.is_set() or watched.ahead or again:
        last = _STOP.is_set()
        began = time.monotonic()
        tries += 1
        try:
            turn = watched.turn()
        except FilesChanged as error:
            if once and tries >= _TRIES:
                raise
            again = last and tries < _TRIES
            say(str(error) if last and not again else f"{error}; they are read again")
            turn = None
        else:
            tries, again = 0, False
        if turn is not None:
            for line in turn.said:
                say(line)
            for line in left_out(turn.added):
                if line not in said:
                    say(line)
                    said.add(line)
            if turn.batch is not None:
                batches += 1
                line_at = time.monotonic()
                state = f"lake: {count(turn.batch.all_files, 'file')}, {_octets(turn.batch.all_octets)}"
                for mishap in turn.batch.mishaps:
                    say(mishap)
                _print(f"batch {batches}: {_batch_text(turn.batch)}; {state}{_waiting(watched)}")
                if turn.batch.seconds > _SLOW * pause and turn.batch.whole and not once:
                    slow += 1
                    if slow == _SLOW_BATCHES:
                        say(
                            "batches take longer than the time between two looks, because they analyze "
                            "whole capture sets again: --set-by can divide the captures, for example by day"
                        )
        if time.monotonic() - line_at >= _QUIET_LINE:
            line_at = time.monotonic()
            _print(f"nothing new; {state}{_waiting(watched)}")
        if last and not again:
            break
        if not _STOP.is_set():
            watched.care()
        if once and not tries:
            break
        if not once:
            _wait(watched, began + pause)
    if not batches:
        print(printable(f"{name}: nothing is new{_waiting(watched)}"), flush=True)


def _wait(watched: "Watch", until: float) -> None:
    """Wait until that time, or until somebody asks to stop, and let files be read on meanwhile."""
    while (left := until - time.monotonic()) > 0:
        if _STOP.wait(min(left, _READ_ON_EVERY)):
            return
        if left > _READ_ON_EVERY:
            watched.read_on()


def _waiting(watched: "Watch") -> str:
    """How many files wait, behind what a line says otherwise."""
    waiting = watched.waiting
    if not waiting:
        return ""
    return f"; {count(waiting, 'new file')} {'waits' if waiting == 1 else 'wait'} (--lateness)"


def _batch_text(batch: "WatchedBatch") -> str:
    return (
        f"{count(batch.fresh, 'file')} new or longer; {count(batch.files, 'file')}, "
        f"{_octets(batch.octets)} analyzed in {batch.seconds:.1f} s; lag {batch.lag:.1f} s"
    )


def _octets(octets: int) -> str:
    return f"{octets / 1e6:.1f} MB"


def _print(text: str) -> None:
    now = datetime.datetime.now(datetime.UTC)
    print(printable(f"{now:%H:%M:%S} {text}"), flush=True)


def left_out(added: "Addition") -> list[str]:
    """What is not added, or not as one would expect, in lines."""
    lines = [
        f"{file.capture}: may be longer now, but others of its set are gone: the rest is not added"
        for file in added.grown
    ]
    return lines + [
        f"{name}: earlier files of this set are gone: connections that continue are joined in the middle"
        for name in added.apart
    ]
