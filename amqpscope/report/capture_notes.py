"""What the notes about a capture mean, and what follows from them: the words for people.

The page that `amqpscope rules pages` writes has this table, and so has the site of the documentation.
"""

from typing import Final, NamedTuple

from amqpscope.report.line import Line

__all__ = ["CAPTURE_NOTES", "CaptureNote", "note_lines", "note_named", "page_of_note"]


class CaptureNote(NamedTuple):
    """Notes with the same meaning. codes: `capture/...`. follows: the effect on the findings."""

    codes: tuple[str, ...]
    means: str
    follows: str


CAPTURE_NOTES: Final = (
    CaptureNote(
        ("capture/gap",),
        "octets are missing: a packet was lost, or the snapshot length cut it off",
        "decoding resumes at the next frame boundary that is certain; findings that depend on the "
        "missing octets are left out or only possible",
    ),
    CaptureNote(
        ("capture/dropped",),
        "the capture file reports dropped packets: a count before this packet, or in total",
        "missing octets are reported as gaps; findings that compare several connections are left "
        "out or only possible",
    ),
    CaptureNote(
        ("capture/truncated",),
        "the file, or its compressed stream, ends inside a record",
        "everything before that record is read; connections end where the capture ends, and no peer"
        " is accused of what it did not send",
    ),
    CaptureNote(
        ("capture/growing",),
        "the file was written to while it was read",
        "everything before the incomplete record is read, as in a file that ends inside a record",
    ),
    CaptureNote(
        ("capture/corrupt",),
        "octets that are no valid record",
        "reading resumes at the next record that is certain; packets in between count as lost",
    ),
    CaptureNote(
        ("capture/compression",),
        "a zstd window above 32 MiB",
        "nothing is read from there on",
    ),
    CaptureNote(
        ("capture/ip-header", "capture/tcp-header"),
        "an IP or TCP header that cannot be valid",
        "the packet counts as lost",
    ),
    CaptureNote(
        ("capture/ip-fragment",),
        "fragments of an IP datagram are missing, or contradict each other",
        "the segment in the datagram counts as lost",
    ),
    CaptureNote(
        ("capture/overlap-differs",),
        "octets were sent again with other content",
        "the first copy is used, as most receivers do",
    ),
    CaptureNote(
        ("capture/ignored",),
        "a RST, FIN or SYN that the receiver ignores: the sequence number lies outside the receive "
        "window, or the sender continued afterwards; the segment may come from a middlebox, or from an "
        "older connection on the same ports",
        "later octets are read, except after a FIN in sequence; findings about later octets are "
        "only possible unless the receiver is seen to continue",
    ),
    CaptureNote(
        ("capture/duplicate",),
        "packets were captured twice, at two capture points",
        "the second copies are skipped; they do not count as retransmissions",
    ),
    CaptureNote(
        ("capture/link-type", "capture/interface"),
        "packets of an unknown link layer, or of an unknown interface",
        "these packets are not read; `--via tshark` may read them",
    ),
    CaptureNote(
        ("capture/joined",),
        "several capture files were concatenated",
        "all of them are read; packets are neither sorted nor deduplicated",
    ),
    CaptureNote(
        ("capture/time", "capture/no-time"),
        "timestamps run backwards, are out of range, or are missing",
        "packets keep the order of the file; timeout findings rest on these timestamps, and are "
        "only possible where no frames in between confirm the elapsed time (the capture clock may "
        "have jumped)",
    ),
    CaptureNote(
        ("capture/length", "capture/version"),
        "a length or version field of the capture file is not valid",
        "the invalid values are used unchanged",
    ),
    CaptureNote(
        ("capture/dialect",),
        "a peer speaks a revision of AMQP 1.0 that is neither the final specification nor the draft of "
        "April 2011, or the frames show too little to name one of the two",
        "frames are decoded as far as they fit the dialect that they resemble most; no rule judges what "
        "either peer sends from there on",
    ),
    CaptureNote(
        ("capture/proxy",),
        "a load balancer put a PROXY header before the client's octets; the header names the real client",
        "the header is skipped, and the client's stream begins after it; findings about how the "
        "client's side of the TCP connection ended are only possible, because the load balancer may"
        " have ended it",
    ),
    CaptureNote(
        ("capture/connect",),
        "the client asked an HTTP proxy for a tunnel (CONNECT), and the proxy opened the tunnel",
        "the request and the answer are skipped, and both streams begin after the answer; the TCP "
        "connection ends at the proxy, not at the server",
    ),
    CaptureNote(
        ("capture/websocket",),
        "WebSocket frames of one direction cannot be read any more; the note names the reason",
        "the rest of this direction counts as not captured",
    ),
    CaptureNote(
        ("capture/tls",),
        "TLS secrets were given, and a connection was not decrypted; the note names the reason",
        "the connection counts as encrypted: nothing is reported about what it carries",
    ),
)


def note_named(given: str) -> CaptureNote | None:
    """The note with this code, in any case; None if there is none."""
    wanted = given.strip().lower()
    return next((note for note in CAPTURE_NOTES if wanted in note.codes), None)


def note_lines(note: CaptureNote) -> list[tuple[Line, int]]:
    """The text: lines, each with the columns before its continuation."""
    head: Line = [("rule", f"{', '.join(note.codes)}  "), ("dim", "note"), ("", ", about the capture itself")]
    facts = [("means", note.means), ("follows", note.follows)]
    return [(head, 2), *(([("key", f"  {label:<10}"), ("", text)], 12) for label, text in facts)]


def page_of_note(note: CaptureNote, heading: str = "#") -> str:
    """The same as Markdown."""
    facts = f"- **What it means:** {note.means}.\n- **What follows:** {note.follows}.\n"
    return f"{heading} {', '.join(note.codes)}\n\n{facts}"
