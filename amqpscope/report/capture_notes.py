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
        "Octets are missing, because a packet was lost or was cut off by the snapshot length.",
        "Decoding resumes at the next place where a frame certainly begins. Findings that depend on the "
        "missing octets are left out, or are reported as possible.",
    ),
    CaptureNote(
        ("capture/dropped",),
        "The capture file reports dropped packets, either before this packet or in total.",
        "Missing octets are reported as gaps. Findings that compare several connections are left out, or "
        "are reported as possible.",
    ),
    CaptureNote(
        ("capture/truncated",),
        "The file, or its compressed stream, ends inside a record.",
        "Everything before that record is read. Connections end where the capture ends, and no peer "
        "is accused because of frames that are not in the capture.",
    ),
    CaptureNote(
        ("capture/growing",),
        "Another program wrote to the file while amqpscope read the file.",
        "Everything before the incomplete record is read, as in a file that ends inside a record.",
    ),
    CaptureNote(
        ("capture/corrupt",),
        "Some octets of the file are not a valid record.",
        "Reading resumes at the next record that is clearly valid. The packets in between count as lost.",
    ),
    CaptureNote(
        ("capture/compression",),
        "The file needs a zstd window above 32 MiB.",
        "Nothing is read after this point.",
    ),
    CaptureNote(
        ("capture/ip-header", "capture/tcp-header"),
        "The IP header or the TCP header of a packet is not valid.",
        "The packet counts as lost.",
    ),
    CaptureNote(
        ("capture/ip-fragment",),
        "Fragments of an IP datagram are missing, or contradict each other.",
        "The TCP segment in the datagram counts as lost.",
    ),
    CaptureNote(
        ("capture/overlap-differs",),
        "A peer sent octets again with other content.",
        "amqpscope uses the first copy, as most receivers do.",
    ),
    CaptureNote(
        ("capture/ignored",),
        "The receiver ignores an RST, FIN or SYN: the sequence number of the segment lies outside the "
        "receive window, or the peer that sent the segment continued afterwards. The segment may "
        "come from a middlebox, or from an older connection on the same ports.",
        "amqpscope reads later octets, but no octets after a FIN that arrived in order. Findings about "
        "later octets are reported as possible, unless the capture shows that the receiver continues.",
    ),
    CaptureNote(
        ("capture/duplicate",),
        "Packets were captured twice, at two capture points.",
        "The second copies are skipped. Second copies do not count as retransmissions.",
    ),
    CaptureNote(
        ("capture/link-type", "capture/interface"),
        "Packets have an unknown link layer, or belong to an unknown interface.",
        "amqpscope does not read the packets. With `--via tshark`, the packets may be readable.",
    ),
    CaptureNote(
        ("capture/joined",),
        "The file consists of several capture files that were concatenated.",
        "All these files are read. Packets are neither sorted nor deduplicated.",
    ),
    CaptureNote(
        ("capture/time", "capture/no-time"),
        "Timestamps run backwards, are out of range, or are missing.",
        "Packets keep the order of the file. Findings about a time-out rest on these timestamps. If no "
        "frames in between confirm the elapsed time, such a finding is reported as possible, because the "
        "capture clock may have jumped.",
    ),
    CaptureNote(
        ("capture/length", "capture/version"),
        "A length field or a version field of the capture file is not valid.",
        "amqpscope uses the invalid value unchanged.",
    ),
    CaptureNote(
        ("capture/log",),
        "The file is not a capture, but the log of a client library. The note says what was read.",
        "Each packet number is the number of a line. The order in which the endpoint of the log sent "
        "and received frames is exact. If the log has no octets, rules about encodings, sizes and "
        "messages are silent.",
    ),
    CaptureNote(
        ("capture/log-damaged",),
        "A line of a log begins like a frame, but is not complete.",
        "The frame counts as missing octets of its connection, as after a lost packet.",
    ),
    CaptureNote(
        ("capture/dialect",),
        "A peer speaks a revision of AMQP 1.0 that is neither the final specification nor the draft "
        "of April 2011. Or the frames show too little to choose between these two "
        "revisions.",
        "Frames are decoded by the dialect that they resemble most. From then on, no rule judges "
        "the frames of either peer.",
    ),
    CaptureNote(
        ("capture/proxy",),
        "A load balancer put a PROXY header before the client's octets. The header names the real client.",
        "The header is skipped, and the client's stream begins after it. Findings about the end of the "
        "client's TCP stream are reported as possible, because the load balancer may have ended the stream.",
    ),
    CaptureNote(
        ("capture/connect",),
        "The client asked an HTTP proxy for a tunnel (CONNECT). The proxy opened the tunnel, or required "
        "credentials first (407).",
        "The request and the answer are skipped, and both streams begin after the answer. The TCP "
        "connection ends at the proxy, not at the server.",
    ),
    CaptureNote(
        ("capture/websocket",),
        "amqpscope cannot read the WebSocket frames of one direction any further. The note gives the reason.",
        "The rest of this direction counts as not captured.",
    ),
    CaptureNote(
        ("capture/tls",),
        "TLS secrets were given, but a connection or one of its directions was not decrypted. The note gives "
        "the reason.",
        "amqpscope reports nothing about data that was not decrypted. If only one direction was decrypted, "
        "the other direction counts as not captured.",
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
    facts = f"- **What it means:** {note.means}\n- **What follows:** {note.follows}\n"
    return f"{heading} {', '.join(note.codes)}\n\n{facts}"
