"""Which dialect of its protocol a connection speaks, by what the frames of both directions show."""

from typing import Final

from amqpscope.analysis.direction import DirectionAnalysis
from amqpscope.model.note import ConnectionNotes
from amqpscope.model.records import FrameRecord
from amqpscope.protocols import DIALECTS
from dissectors.amqp10_draft2011.names import REVISION
from dissectors.detect import UNKNOWN_DIALECT

__all__ = ["AMBIGUOUS", "note_revision", "note_unknown_dialect", "spoken_dialect", "weigh_mixture"]

AMBIGUOUS: Final = frozenset([usual for usual, dialect in DIALECTS if dialect])
"""The protocols that have dialects."""

_NOTE: Final = "capture/dialect"


def spoken_dialect(
    spoken: str, chosen: str, first: DirectionAnalysis, second: DirectionAnalysis, at_last: bool
) -> str:
    """The protocol that stands for the dialect of both sides, "" if that is not known yet.

    spoken: the usual protocol. chosen: the dialect that somebody has named, "" to find out. at_last: nothing
    more is known later. Where the sides differ, and at last where nothing is known, it is the usual one. If
    what there is speaks for another one and does not suffice, it is `UNKNOWN_DIALECT`.
    """
    found = chosen
    open_ = leans = False
    for side in (first, second):
        decoder = side.decoder
        if side.foreign:
            continue
        if decoder is None or (decoder.undecided and not decoder.opaque):
            open_ = True
            leans = leans or (decoder is not None and decoder.leans())
        elif not decoder.dialect:
            return spoken
        else:
            found = decoder.dialect
    if open_ and not at_last and not chosen:
        return ""
    if leans and not found:
        return UNKNOWN_DIALECT
    return DIALECTS.get((spoken, found), spoken)


def note_unknown_dialect(notes: ConnectionNotes) -> None:
    """Note that no rule judges a connection, because its dialect is not known."""
    open_ = "the frames do not show which dialect of AMQP 1.0 is spoken, so no rule judges them"
    notes.add(_NOTE, 0, 0, open_)


def note_revision(notes: ConnectionNotes, record: FrameRecord) -> None:
    """Note the revision of the dialect that a frame of the draft shows, once for the connection."""
    for problem in record.frame.problems:
        if problem.code == REVISION and _NOTE not in notes.counts:
            named = "an unknown dialect of AMQP 1.0: the revision of February 2011 fits"
            notes.add(_NOTE, record.packet, record.time, f"the {record.peer} speaks {named}")


def weigh_mixture(record: FrameRecord, other: DirectionAnalysis) -> None:
    """A frame of a dialect is a fault only if the other end is known to speak the usual one."""
    decoder = other.decoder
    if decoder is None or decoder.undecided or decoder.opaque or decoder.dialect:
        record.frame.assumed = True
