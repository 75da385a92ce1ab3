"""A capture through everything that reads one: all commands in all their forms, a live watch, the pipeline.

In this process, with what is written kept from the terminal. For tests in which nothing may fail, whatever
the capture says.
"""

from __future__ import annotations

import importlib.util
import io
import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import redirect_stderr, redirect_stdout
from functools import partial
from pathlib import Path
from typing import NamedTuple

from support.commands import DEMO, every_way, set_against_another
from support.fake_source import FakeSource, PacketGroup, packets_of

from amqpscope.cli.live_session import LiveSession, Stop
from amqpscope.cli.live_view import LiveView
from amqpscope.cli.live_writers import LiveJson, LiveText
from amqpscope.cli.main import run
from amqpscope.cli.nonblocking_output import NonBlockingOutput
from amqpscope.cli.selection import Selection
from amqpscope.input.live import Batch, LiveWatch
from amqpscope.model.note import INTERNAL
from amqpscope.policy import Given, Policy
from amqpscope.report.rule_counts import RuleCounts
from amqpscope.report.top.view import TopView

HAS_PIPELINE = all(importlib.util.find_spec(name) for name in ("pyarrow", "pyspark", "pandas"))

if HAS_PIPELINE:
    from amqpscope.pipeline.capture_set import capture_sets
    from amqpscope.pipeline.chain import read_set
    from amqpscope.pipeline.rows import Rows

__all__ = ["FormOutput", "everywhere", "failures", "stored", "ways", "written_by"]


class FormOutput(NamedTuple):
    """What was done with the capture, how it ended (-1 where there is no status), and what was written."""

    how: str
    status: int
    text: str


def ways(
    path: Path, packets: Iterable[int] = (), options: Sequence[str] = ()
) -> list[Callable[[], FormOutput]]:
    """All that is done with a capture, to be called. packets: to ask `why` about. options: of every one."""
    commands = [*every_way(path), *set_against_another(path)]
    commands += [["diff", "--all", str(one), str(two)] for one, two in ((DEMO, path), (path, path))]
    for packet in packets:
        commands += [["why", "--format", form, str(path), str(packet)] for form in ("text", "json")]
    found: list[Callable[[], FormOutput]] = [partial(_command, [*one, *options]) for one in commands]
    found += [partial(_live, path, form) for form in ("text", "ndjson", "top")]
    if HAS_PIPELINE:
        found.append(partial(_rows, path))
    return found


def everywhere(path: Path, packets: Iterable[int] = (), options: Sequence[str] = ()) -> Iterator[FormOutput]:
    """Do it all."""
    for way in ways(path, packets, options):
        yield way()


def written_by(path: Path, folder: Path, options: Sequence[str] = ()) -> Iterator[FormOutput]:
    """Every file that a command makes of a capture for people to hand on, and what the command says."""
    for arguments in (
        *(
            ["draw", str(path), "-o", str(folder / f"drawn.{suffix}")]
            for suffix in ("html", "svg", "md", "txt")
        ),
        ["check", "--write-baseline", str(folder / "baseline.json"), str(path)],
        ["cut", str(path), "-o", str(folder / "cut.pcapng"), "--anonymise", "--key", "k"],
        ["cut", str(path), "--anonymise", "--report", str(folder / "report")],
    ):
        said = _command([*arguments, *options])
        yield said
        for file in [one for one in folder.rglob("*") if one.is_file()]:
            yield FormOutput(f"{said.how}: {file.name}", said.status, file.read_bytes().decode("latin-1"))
            file.unlink()


def failures(reported: Iterable[FormOutput]) -> list[str]:
    """What failed in these: an error that came up in amqpscope itself."""
    found = []
    for how, _, text in reported:
        at = text.find(INTERNAL)
        if at >= 0 or "Traceback" in text:
            found.append(f"{how}: {text[max(at, 0) :][:300]}")
    return found


def _command(arguments: list[str]) -> FormOutput:
    written = io.StringIO()
    with redirect_stdout(written), redirect_stderr(written):
        status = run(arguments)
    return FormOutput(" ".join(arguments), int(status), written.getvalue())


def _live(path: Path, form: str) -> FormOutput:
    """A watch, in one of its forms; `top` is the full screen."""
    packets = packets_of(path.read_bytes())
    watch = LiveWatch(FakeSource([PacketGroup(packets[at : at + 20]) for at in range(0, len(packets), 20)]))
    written = io.StringIO()
    with open(os.devnull, "wb") as nowhere, redirect_stdout(written), redirect_stderr(written):
        audience: LiveView = _Screen(watch)
        if form != "top":
            outlet = NonBlockingOutput(nowhere.fileno(), "utf-8")
            audience = LiveText("pipe", Selection(), False, outlet, "r", 2)
            if form == "ndjson":
                audience = LiveJson("pipe", Selection(), False, outlet, True)
        stop = Stop(0, 0, frozenset(), False)
        session = LiveSession(watch, audience, None, stop, Policy(None, Given()))
        session.run()
        status = session.status()
    return FormOutput(f"sniff, {form}", status, written.getvalue())


class _Screen(LiveView):
    """`sniff --top` without a terminal."""

    def __init__(self, watch: LiveWatch) -> None:
        super().__init__()
        self._watch = watch
        self._view = TopView("pipe")

    @property
    def gone(self) -> bool:
        return False

    def write(self, batch: Batch, behind: bool) -> None:
        view = self._view
        view.saw(batch.records)
        view.found(batch.found)
        view.amended(batch.amended)
        view.update(self._watch.newest, self._watch.table.open_connections())
        for key in ("enter", "t", "escape", "f", "escape", "escape"):
            view.render(120, 40)
            view.key(key)

    def end(self, conclusion: str, counts: RuleCounts) -> None:
        """It was drawn as it came."""


def stored(path: Path) -> str:
    """All text in the tables of the pipeline."""
    rows = Rows()
    text = []
    for one in capture_sets([str(path)], "file"):
        for _, batch in read_set(one, rows):
            text.append(json.dumps(batch.to_pylist(), default=str))
    for _, batch in rows.batches(True):
        text.append(json.dumps(batch.to_pylist(), default=str))
    return "\n".join(text)


def _rows(path: Path) -> FormOutput:
    """The tables of the pipeline, without Spark."""
    rows = Rows()
    for one in capture_sets([str(path)], "file"):
        for _ in [*read_set(one, rows), *rows.batches(True)]:
            pass
    failed = [f"{key[1]}: {INTERNAL}: {key[2]}" for key in rows.counts if key[0] == "mishap"]
    return FormOutput("pipeline", -1, "\n".join(failed))
