"""What an earlier run had found, to tell what is new since then."""

from collections.abc import Collection
from typing import Any, NamedTuple

import pyarrow.compute as pc

from amqpscope.pipeline.failure import PipelineError
from amqpscope.pipeline.lake import Lake
from amqpscope.pipeline.runs import COMPACT

__all__ = ["Earlier", "earlier"]


class Earlier(NamedTuple):
    """The findings and diagnoses of an earlier run. run: its id; "" if there is none to compare with, `why`
    then says it in a sentence.

    fingerprints: of its findings, None if it has not written them; diagnoses: their code, whose move it is,
    and their subject.
    """

    run: str
    fingerprints: frozenset[str] | None = None
    diagnoses: frozenset[tuple[str | None, ...]] | None = None
    why: str = ""

    def found(self, question: str) -> Collection[Any] | None:
        """What the run had of what a question about new things asks for. None: that is not known."""
        return self.fingerprints if question == "new_findings" else self.diagnoses


def earlier(lake: Lake, since: str = "") -> Earlier:
    """What the run before the one that this lake shows had found, or the run `since`.

    PipelineError if there is no such run. If there is none before, or its files are deleted, `why` says it.
    """
    if since:
        return _found(Lake(lake.path, since, lake.tags))
    shown = lake.written().number
    runs = [run for run in lake.runs() if run.kind != COMPACT and run.number <= shown]
    if len(runs) < 2:
        return Earlier("", why="The lake has no earlier run.")
    try:
        return _found(Lake(lake.path, runs[-2].name, lake.tags))
    except PipelineError as error:
        return Earlier("", why=f"The run before cannot be read: {error}.")


def _found(lake: Lake) -> Earlier:
    run = lake.written()
    fingerprints: frozenset[str] | None = None
    diagnoses: frozenset[tuple[str | None, ...]] | None = None
    with lake.directory.explained():
        if "findings" in run.versions:
            table = lake.dataset("findings", lake.parts("findings")).to_table(columns=["fingerprint"])
            fingerprints = frozenset(pc.unique(table["fingerprint"]).to_pylist())
        if "diagnoses" in run.versions:
            keys = ["code", "whose_move", "subject"]
            table = lake.dataset("diagnoses", lake.parts("diagnoses")).to_table(columns=keys)
            diagnoses = frozenset(zip(*(table[key].to_pylist() for key in keys), strict=True))
    return Earlier(run.name, fingerprints, diagnoses)
