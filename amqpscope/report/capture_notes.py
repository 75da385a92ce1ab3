"""What the notes about a capture itself mean, and what follows from them: the words for people.

README has the same table, held to this one by a test; so has the page that `amqpscope rules pages` writes.
"""

from typing import Final, NamedTuple

from amqpscope.report.line import Line

__all__ = ["CAPTURE_NOTES", "CaptureNote", "note_lines", "note_named", "page_of_note"]


class CaptureNote(NamedTuple):
    """Notes that mean the same. codes: `capture/...`. follows: what becomes of the verdicts."""

    codes: tuple[str, ...]
    means: str
    follows: str


CAPTURE_NOTES: Final = (
    CaptureNote(
        ("capture/gap",),
        "octets were sent and not captured (lost, or cut off by the snapshot length)",
        "reading goes on at the next frame that is certain; what rests on the missing part is "
        "silent or possible",
    ),
    CaptureNote(
        ("capture/dropped",),
        "who captured says that packets were lost, and how many before this one, or in all",
        "what is missing of a connection is told by its gaps; what connections are held against "
        "each other is possible, or not judged",
    ),
    CaptureNote(
        ("capture/truncated",),
        "the file, or what is compressed, ends inside a record",
        "all before it is read; connections end as the capture does: nothing is held against a "
        "peer for what it did not say",
    ),
    CaptureNote(
        ("capture/growing",),
        "the file was written to while it was read",
        "as of one that ends inside a record",
    ),
    CaptureNote(
        ("capture/corrupt",),
        "octets that are no record",
        "the next records that are certain go on; packets in between are as lost ones",
    ),
    CaptureNote(
        ("capture/compression",),
        "a zstd window above 32 MiB",
        "nothing is read from there on",
    ),
    CaptureNote(
        ("capture/ip-header", "capture/tcp-header"),
        "a header that cannot be right",
        "the packet is as a lost one",
    ),
    CaptureNote(
        ("capture/ip-fragment",),
        "fragments of a datagram are missing, or contradict each other",
        "the segment in it is as a lost one",
    ),
    CaptureNote(
        ("capture/overlap-differs",),
        "octets were sent again with other content",
        "the first copy counts, as it does for most receivers",
    ),
    CaptureNote(
        ("capture/ignored",),
        "an RST, FIN or SYN that its receiver does not take: its number lies outside the receive window, or "
        "its sender went on (a middlebox, or an older connection on the same ports)",
        "what follows is read, but not behind a FIN in its place; unless the receiver is seen to go on, what "
        "follows is possible",
    ),
    CaptureNote(
        ("capture/duplicate",),
        "packets were captured twice, by two taps",
        "nothing: they are no retransmissions",
    ),
    CaptureNote(
        ("capture/link-type", "capture/interface"),
        "packets of a link layer, or an interface, that is not known",
        "they are not read: `--via tshark` may",
    ),
    CaptureNote(
        ("capture/joined",),
        "capture files put end to end",
        "read on; order and copies are as they are",
    ),
    CaptureNote(
        ("capture/time", "capture/no-time"),
        "times run backwards, are out of range, or are missing",
        "packets keep the order of the file; what is said of silences rests on such times; one "
        "that is not attested by frames in between is possible, for a clock may be set forward",
    ),
    CaptureNote(
        ("capture/length", "capture/version"),
        "lengths or a version that a correct writer would not write",
        "read as they stand",
    ),
    CaptureNote(
        ("capture/proxy",),
        "a load balancer has put a PROXY header before the client's octets, which names the real client",
        "the header is skipped; the client's stream begins behind it; that the client's end of the TCP "
        "connection was the client's doing is possible",
    ),
)


def note_named(given: str) -> CaptureNote | None:
    """What is told of the note with this code, in any case; None if there is none."""
    wanted = given.strip().lower()
    return next((note for note in CAPTURE_NOTES if wanted in note.codes), None)


def note_lines(note: CaptureNote) -> list[tuple[Line, int]]:
    """What is told of it: lines, each with the columns before its continuation."""
    head: Line = [("rule", f"{', '.join(note.codes)}  "), ("dim", "note"), ("", ", about the capture itself")]
    facts = [("means", note.means), ("follows", note.follows)]
    return [(head, 2), *(([("key", f"  {label:<10}"), ("", text)], 12) for label, text in facts)]


def page_of_note(note: CaptureNote, heading: str = "#") -> str:
    """The same as Markdown."""
    facts = f"- **What it means:** {note.means}.\n- **What follows:** {note.follows}.\n"
    return f"{heading} {', '.join(note.codes)}\n\n{facts}"
