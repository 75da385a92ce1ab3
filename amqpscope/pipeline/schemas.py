"""The tables: columns, types, units, and what they mean. `amqpscope pipeline tables` prints this.

Frames and findings have the names of `read --format ndjson` and `check --format ndjson`. A time stands
twice: as a timestamp in microseconds, which Spark can compute with, and exact in nanoseconds since 1970
(`_ns`). What has no fixed form, fields and messages, is JSON text. `date` (of the row's time, UTC) and
`protocol` are the names of directories, not columns of the files.

`SCHEMA_VERSION` counts up when a column changes its name, type or meaning; new columns may come without.
"""

from typing import NamedTuple

import pyarrow as pa

__all__ = ["SCHEMA_VERSION", "SEGMENTS", "TABLES", "Column", "Table", "describe"]

SCHEMA_VERSION = 1

TEXT = pa.string()
WHOLE = pa.int64()
SMALL = pa.int32()
YES = pa.bool_()
TIME = pa.timestamp("us", tz="UTC")


class Column(NamedTuple):
    """A column of a table."""

    name: str
    type: pa.DataType
    meaning: str


class Table(NamedTuple):
    """A table. partitioned: by date and protocol, the last two columns."""

    name: str
    meaning: str
    columns: tuple[Column, ...]
    partitioned: bool

    @property
    def schema(self) -> pa.Schema:
        """All columns, also those that are directories."""
        return pa.schema([(column.name, column.type) for column in self.columns])

    @property
    def stored(self) -> pa.Schema:
        """The columns that files have."""
        schema = self.schema
        return pa.schema(list(schema)[:-2]) if self.partitioned else schema


_SET = Column("capture_set", TEXT, "the files that are one capture")
_CAPTURE = Column("capture", TEXT, "the file")
_CONNECTION = Column("connection", TEXT, "client>server#n, unique in its capture set")
_NOTES = pa.list_(pa.struct([("code", TEXT), ("packet", WHOLE), ("detail", TEXT)]))
_PARTITIONS = (
    Column("date", pa.date32(), "of the time, UTC"),
    Column("protocol", TEXT, "amqp10, amqp091, tls, ...; null where there were no data"),
)


def _time(name: str, meaning: str) -> tuple[Column, Column]:
    return Column(name, TIME, meaning), Column(f"{name}_ns", WHOLE, "the same, exact: nanoseconds since 1970")


def _each_peer(name: str, kind: pa.DataType, meaning: str) -> tuple[Column, ...]:
    return tuple(Column(f"{peer}_{name}", kind, f"{peer}: {meaning}") for peer in ("client", "server"))


_FILES = Table(
    "files",
    "every input, and what became of it",
    (
        _SET,
        _CAPTURE,
        Column("position", SMALL, "place among the files of its set, from 0"),
        Column("size", WHOLE, "octets of the file"),
        Column("status", TEXT, "ok; partial: read as far as that can be done; unreadable"),
        Column(
            "reason", TEXT, "missing, forbidden, empty, foreign, corrupt, truncated, growing, failed; null"
        ),
        Column("detail", TEXT, "the reason in a sentence"),
        Column("packets", WHOLE, "packets in it"),
        Column("segments", WHOLE, "TCP segments among them"),
        Column(
            "notes", _NOTES, "what is wrong with the capture, not with a peer; packet null: the whole file"
        ),
    ),
    False,
)

_CONNECTIONS = Table(
    "connections",
    "every TCP connection",
    (
        _SET,
        _CONNECTION,
        Column("encrypted", YES, "its octets are ciphertext"),
        Column("client_address", TEXT, "IP address"),
        Column("client_port", SMALL, "TCP port"),
        Column("server_address", TEXT, "IP address"),
        Column("server_port", SMALL, "TCP port"),
        *_time("start", "its first packet"),
        *_time("end", "its last packet"),
        *_each_peer("octets", WHOLE, "octets of its stream that were captured"),
        *_each_peer("missing", WHOLE, "octets of its stream that were not captured"),
        *_each_peer("retransmitted", WHOLE, "octets sent more than once"),
        *_each_peer("captured_twice", WHOLE, "octets captured more than once, but sent once: by two taps"),
        Column("midstream", YES, "its beginning was not captured"),
        *_each_peer("tcp_ended", TEXT, "fin, rst, or null: still open at the end of the capture"),
        *_each_peer("frames", WHOLE, "frames sent"),
        *_each_peer("container", TEXT, "container-id of its open; in 0-9-1 connection_name, cluster_name"),
        *_each_peer("product", TEXT, "product and version by its properties"),
        Column("sasl_mechanism", TEXT, "as the client chose"),
        Column("sasl_outcome", TEXT, "ok, auth, sys, ...; in 0-9-1 ok, refused"),
        Column("sessions", WHOLE, "sessions begun; in 0-9-1 channels opened"),
        *_each_peer("messages", WHOLE, "messages sent"),
        *_each_peer("message_octets", WHOLE, "octets of the messages sent"),
        Column("frames_with_problems", WHOLE, "frames that are malformed"),
        Column(
            "errors",
            pa.list_(
                pa.struct(
                    [
                        ("peer", TEXT),
                        ("in", TEXT),
                        ("condition", TEXT),
                        ("description", TEXT),
                        ("link", TEXT),
                        ("count", WHOLE),
                    ]
                )
            ),
            "errors that a peer reported, and in which frame or outcome",
        ),
        Column("errors_not_listed", WHOLE, "further errors"),
        Column("links_not_listed", WHOLE, "links beyond those in the table links"),
        Column("notes", _NOTES, "what is wrong with the capture of this connection"),
        *_PARTITIONS,
    ),
    True,
)

_LINKS = Table(
    "links",
    "every link, by the connection it was attached on",
    (
        _SET,
        _CONNECTION,
        Column("number", SMALL, "counts the links of a connection by their first attach, from 0"),
        Column("name", TEXT, "as attached"),
        Column("sender", TEXT, "client or server"),
        Column("source", TEXT, "address"),
        Column("target", TEXT, "address, or coordinator"),
        Column("transfers", WHOLE, "transfer frames"),
        Column("messages", WHOLE, "whole messages"),
        Column("aborted", WHOLE, "deliveries given up by the sender"),
        Column("octets", WHOLE, "octets of messages"),
        Column("ended", TEXT, "detached or closed, and by whom; null: by nobody"),
        Column("error", TEXT, "error condition of a detach"),
        *_PARTITIONS,
    ),
    True,
)

_FRAMES = Table(
    "frames",
    "every frame",
    (
        _SET,
        _CAPTURE,
        Column("packet", WHOLE, "with the frame's first octet, as Wireshark counts"),
        *_time("time", "of that packet"),
        _CONNECTION,
        Column("peer", TEXT, "who sent it: client or server"),
        Column("kind", TEXT, "header, amqp, sasl, method, content-header, body, heartbeat, unknown, skipped"),
        Column("name", TEXT, "transfer, sasl-init, basic.publish, ..."),
        Column("channel", SMALL, "AMQP channel, null where there is none"),
        Column("offset", WHOLE, "where it begins in its sender's stream, octets"),
        Column("size", WHOLE, "octets"),
        Column("fields", TEXT, "JSON object: by the specification's names, secrets hidden"),
        Column(
            "problems",
            pa.list_(pa.struct([("code", TEXT), ("offset", WHOLE), ("path", TEXT), ("reason", TEXT)])),
            "what is malformed; offset in octets of the frame",
        ),
        Column("last_packet", WHOLE, "with its last octet, if another; in a later file, that file's number"),
        Column("missing", WHOLE, "octets of it not captured, if any"),
        Column("payload", WHOLE, "octets of message in a transfer or body"),
        Column("link", TEXT, "name of the link it speaks of"),
        Column("address", TEXT, "of that link"),
        Column("message", TEXT, "JSON object: the message that this frame completes, without bodies"),
        *_PARTITIONS,
    ),
    True,
)

_DELIVERIES = Table(
    "deliveries",
    "every delivery, and how it was settled",
    (
        _SET,
        _CAPTURE,
        Column("packet", WHOLE, "with its first frame: transfer, basic.publish, deliver, get-ok"),
        *_time("time", "of that packet"),
        _CONNECTION,
        Column("sender", TEXT, "client or server"),
        Column("channel", SMALL, "the sender's channel"),
        Column("link", TEXT, "name of the link; in 0-9-1 consumer-tag"),
        Column("address", TEXT, "of that link; in 0-9-1 routing key, behind exchange/ unless the default"),
        Column(
            "delivery_id",
            WHOLE,
            "by the first transfer; in 0-9-1 delivery-tag, or number of the confirm",
        ),
        Column("delivery_tag", TEXT, "hex; AMQP 1.0 only"),
        Column("transfers", WHOLE, "transfer or body frames"),
        Column("payload", WHOLE, "octets of message"),
        Column("complete", YES, "its end was seen"),
        Column("aborted", YES, "given up by its sender"),
        Column(
            "outcome",
            TEXT,
            "accepted, rejected, released, ..., ack, nack requeue, ...; null: none was stated",
        ),
        Column("condition", TEXT, "error condition of the outcome"),
        Column("settled_by", TEXT, "who settled first, client or server; null: nobody while it was followed"),
        Column("settled_packet", WHOLE, "where that was; in a later file, that file's number"),
        Column("latency_ns", WHOLE, "nanoseconds from the first frame to that"),
        *_PARTITIONS,
    ),
    True,
)

_FINDINGS = Table(
    "findings",
    "every rule broken",
    (
        _SET,
        Column("rule", TEXT, "id, `amqpscope rules explain` tells about it"),
        Column("severity", TEXT, "error, warning, note"),
        Column("certainty", TEXT, "certain: the capture proves it; possible"),
        Column("requirement", TEXT, "the specification's level"),
        Column("message", TEXT, "one sentence with the values"),
        Column("spec", TEXT, "document and section"),
        Column("edition", TEXT, "of the specification"),
        Column("profile", TEXT, "of a vendor, that changed it"),
        _CAPTURE,
        Column("packet", WHOLE, "with the offending frame's first octet"),
        *_time("time", "of that packet"),
        Column("packets", pa.list_(pa.struct([("capture", TEXT), ("packet", WHOLE)])), "all that matter"),
        _CONNECTION,
        Column("peer", TEXT, "at fault: client or server"),
        Column("channel", SMALL, "AMQP channel"),
        Column("session", WHOLE, "counts begins on the connection"),
        Column("link", pa.struct([("name", TEXT), ("sender", TEXT)]), "the link"),
        Column("delivery_id", WHOLE, "the delivery"),
        Column("expected_condition", TEXT, "the error a correct peer answers with"),
        Column(
            "reaction",
            pa.struct(
                [("frame", TEXT), ("condition", TEXT), ("after_seconds", pa.float64()), ("packet", WHOLE)]
            ),
            "what the other peer did",
        ),
        Column("evidence", TEXT, "JSON object: the state before, as named values"),
        Column("fingerprint", TEXT, "the same over ports and times"),
        *_PARTITIONS,
    ),
    True,
)

TABLES: dict[str, Table] = {
    table.name: table for table in (_FILES, _CONNECTIONS, _LINKS, _FRAMES, _DELIVERIES, _FINDINGS)
}
"""The tables of a lake, by name."""

SEGMENTS = Table(
    "segments",
    "every TCP segment, without its octets",
    (
        _SET,
        _CAPTURE,
        Column("packet", WHOLE, "as Wireshark counts"),
        *_time("time", "of that packet"),
        Column("source_address", TEXT, "IP address"),
        Column("source_port", SMALL, "TCP port"),
        Column("destination_address", TEXT, "IP address"),
        Column("destination_port", SMALL, "TCP port"),
        Column("sequence", WHOLE, "raw sequence number"),
        Column("acknowledgement", WHOLE, "raw acknowledgement number, null without the flag"),
        Column("flags", SMALL, "the low eight TCP flag bits"),
        Column("payload", WHOLE, "octets of payload on the wire"),
        Column("cut", WHOLE, "octets of it that were not captured"),
    ),
    False,
)
"""Not in a lake: given by the data source alone."""


def describe(table: Table) -> list[str]:
    """A table as lines of text."""
    lines = [f"{table.name}: {table.meaning}"]
    for column in table.columns:
        lines.append(f"  {column.name:<22} {_type(column.type):<12} {column.meaning}")
    return lines


def _type(kind: pa.DataType) -> str:
    if pa.types.is_list(kind):
        return f"list of {_type(kind.value_type)}"
    if pa.types.is_struct(kind):
        return "(" + ", ".join(field.name for field in kind) + ")"
    return {TIME: "timestamp", WHOLE: "long", SMALL: "int", YES: "boolean"}.get(kind, str(kind))
