"""The tables: columns, types, units, and what they mean. `amqpscope pipeline tables` prints this.

Frames and findings have the names of `read --format ndjson` and `check --format ndjson`. A time stands
twice: as a timestamp in microseconds, which Spark can compute with, and exact in nanoseconds since 1970
(`_ns`). What has no fixed form, fields and messages, is JSON text. `date` (of the row's time, UTC) and
`protocol` are the names of directories, not columns of the files.

`SCHEMA_VERSION` counts up when a column changes its name, type or meaning; new columns may come without.
"""

from typing import NamedTuple

import pyarrow as pa

__all__ = ["SCHEMA_VERSION", "SEGMENTS", "TABLES", "ColumnSchema", "TableSchema", "describe"]

SCHEMA_VERSION = 1

TEXT = pa.string()
WHOLE = pa.int64()
SMALL = pa.int32()
YES = pa.bool_()
TIME = pa.timestamp("us", tz="UTC")


class ColumnSchema(NamedTuple):
    """A column of a table."""

    name: str
    type: pa.DataType
    meaning: str


class TableSchema(NamedTuple):
    """A table. partitioned: by date and protocol, the last two columns."""

    name: str
    meaning: str
    columns: tuple[ColumnSchema, ...]
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


_SET = ColumnSchema("capture_set", TEXT, "the files that are one capture")
_CAPTURE = ColumnSchema("capture", TEXT, "the file")
_CONNECTION = ColumnSchema("connection", TEXT, "client>server#n, unique in its capture set")
_NOTES = pa.list_(pa.struct([("code", TEXT), ("packet", WHOLE), ("detail", TEXT)]))
_PARTITIONS = (
    ColumnSchema("date", pa.date32(), "of the time, UTC"),
    ColumnSchema("protocol", TEXT, "amqp10, amqp091, tls, ...; null where there were no data"),
)


def _time(name: str, meaning: str) -> tuple[ColumnSchema, ColumnSchema]:
    return ColumnSchema(name, TIME, meaning), ColumnSchema(
        f"{name}_ns", WHOLE, "the same, exact: nanoseconds since 1970"
    )


def _each_peer(name: str, kind: pa.DataType, meaning: str) -> tuple[ColumnSchema, ...]:
    return tuple(ColumnSchema(f"{peer}_{name}", kind, f"{peer}: {meaning}") for peer in ("client", "server"))


_FILES = TableSchema(
    "files",
    "every input, and what became of it",
    (
        _SET,
        _CAPTURE,
        ColumnSchema("position", SMALL, "place among the files of its set, from 0"),
        ColumnSchema("size", WHOLE, "octets of the file"),
        ColumnSchema("status", TEXT, "ok; partial: read as far as that can be done; unreadable"),
        ColumnSchema(
            "reason", TEXT, "missing, forbidden, empty, foreign, corrupt, truncated, growing, failed; null"
        ),
        ColumnSchema("detail", TEXT, "the reason in a sentence"),
        ColumnSchema("packets", WHOLE, "packets in it"),
        ColumnSchema("segments", WHOLE, "TCP segments among them"),
        ColumnSchema(
            "notes", _NOTES, "what is wrong with the capture, not with a peer; packet null: the whole file"
        ),
    ),
    False,
)

_CONNECTIONS = TableSchema(
    "connections",
    "every TCP connection",
    (
        _SET,
        _CONNECTION,
        ColumnSchema("encrypted", YES, "its octets are ciphertext"),
        ColumnSchema("client_address", TEXT, "IP address"),
        ColumnSchema("client_port", SMALL, "TCP port"),
        ColumnSchema("server_address", TEXT, "IP address"),
        ColumnSchema("server_port", SMALL, "TCP port"),
        *_time("start", "its first packet"),
        *_time("end", "its last packet"),
        *_each_peer("octets", WHOLE, "octets of its stream that were captured"),
        *_each_peer("missing", WHOLE, "octets of its stream that were not captured"),
        *_each_peer("retransmitted", WHOLE, "octets sent more than once"),
        *_each_peer("captured_twice", WHOLE, "octets captured more than once, but sent once: by two taps"),
        ColumnSchema("midstream", YES, "its beginning was not captured"),
        *_each_peer("tcp_ended", TEXT, "fin, rst, or null: still open at the end of the capture"),
        *_each_peer("frames", WHOLE, "frames sent"),
        *_each_peer("container", TEXT, "container-id of its open; in 0-9-1 connection_name, cluster_name"),
        *_each_peer("product", TEXT, "product and version by its properties"),
        ColumnSchema("sasl_mechanism", TEXT, "as the client chose"),
        ColumnSchema("sasl_outcome", TEXT, "ok, auth, sys, ...; in 0-9-1 ok, refused"),
        ColumnSchema("sessions", WHOLE, "sessions begun; in 0-9-1 channels opened"),
        *_each_peer("messages", WHOLE, "messages sent"),
        *_each_peer("message_octets", WHOLE, "octets of the messages sent"),
        ColumnSchema("frames_with_problems", WHOLE, "frames that are malformed"),
        ColumnSchema(
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
        ColumnSchema("errors_not_listed", WHOLE, "further errors"),
        ColumnSchema("links_not_listed", WHOLE, "links beyond those in the table links"),
        ColumnSchema("notes", _NOTES, "what is wrong with the capture of this connection"),
        *_PARTITIONS,
    ),
    True,
)

_LINKS = TableSchema(
    "links",
    "every link, by the connection it was attached on",
    (
        _SET,
        _CONNECTION,
        ColumnSchema("number", SMALL, "counts the links of a connection by their first attach, from 0"),
        ColumnSchema("name", TEXT, "as attached"),
        ColumnSchema("sender", TEXT, "client or server"),
        ColumnSchema("source", TEXT, "address"),
        ColumnSchema("target", TEXT, "address, or coordinator"),
        ColumnSchema("transfers", WHOLE, "transfer frames"),
        ColumnSchema("messages", WHOLE, "whole messages"),
        ColumnSchema("aborted", WHOLE, "deliveries given up by the sender"),
        ColumnSchema("octets", WHOLE, "octets of messages"),
        ColumnSchema("ended", TEXT, "detached or closed, and by whom; null: by nobody"),
        ColumnSchema("error", TEXT, "error condition of a detach"),
        *_PARTITIONS,
    ),
    True,
)

_FRAMES = TableSchema(
    "frames",
    "every frame",
    (
        _SET,
        _CAPTURE,
        ColumnSchema("packet", WHOLE, "with the frame's first octet, as Wireshark counts"),
        *_time("time", "of that packet"),
        _CONNECTION,
        ColumnSchema("peer", TEXT, "who sent it: client or server"),
        ColumnSchema(
            "kind", TEXT, "header, amqp, sasl, method, content-header, body, heartbeat, unknown, skipped"
        ),
        ColumnSchema("name", TEXT, "transfer, sasl-init, basic.publish, ..."),
        ColumnSchema("channel", SMALL, "AMQP channel, null where there is none"),
        ColumnSchema("offset", WHOLE, "where it begins in its sender's stream, octets"),
        ColumnSchema("size", WHOLE, "octets"),
        ColumnSchema("fields", TEXT, "JSON object: by the specification's names, secrets hidden"),
        ColumnSchema(
            "problems",
            pa.list_(pa.struct([("code", TEXT), ("offset", WHOLE), ("path", TEXT), ("reason", TEXT)])),
            "what is malformed; offset in octets of the frame",
        ),
        ColumnSchema(
            "last_packet", WHOLE, "with its last octet, if another; in a later file, that file's number"
        ),
        ColumnSchema("missing", WHOLE, "octets of it not captured, if any"),
        ColumnSchema("payload", WHOLE, "octets of message in a transfer or body"),
        ColumnSchema("link", TEXT, "name of the link it speaks of"),
        ColumnSchema("address", TEXT, "of that link"),
        ColumnSchema("message", TEXT, "JSON object: the message that this frame completes, without bodies"),
        *_PARTITIONS,
    ),
    True,
)

_DELIVERIES = TableSchema(
    "deliveries",
    "every delivery, and how it was settled",
    (
        _SET,
        _CAPTURE,
        ColumnSchema("packet", WHOLE, "with its first frame: transfer, basic.publish, deliver, get-ok"),
        *_time("time", "of that packet"),
        _CONNECTION,
        ColumnSchema("sender", TEXT, "client or server"),
        ColumnSchema("channel", SMALL, "the sender's channel"),
        ColumnSchema("link", TEXT, "name of the link; in 0-9-1 consumer-tag"),
        ColumnSchema(
            "address", TEXT, "of that link; in 0-9-1 routing key, behind exchange/ unless the default"
        ),
        ColumnSchema(
            "delivery_id",
            WHOLE,
            "by the first transfer; in 0-9-1 delivery-tag, or number of the confirm",
        ),
        ColumnSchema("delivery_tag", TEXT, "hex; AMQP 1.0 only"),
        ColumnSchema("transfers", WHOLE, "transfer or body frames"),
        ColumnSchema("payload", WHOLE, "octets of message"),
        ColumnSchema("complete", YES, "its end was seen"),
        ColumnSchema("aborted", YES, "given up by its sender"),
        ColumnSchema(
            "outcome",
            TEXT,
            "accepted, rejected, released, ..., ack, nack requeue, ...; null: none was stated",
        ),
        ColumnSchema("condition", TEXT, "error condition of the outcome"),
        ColumnSchema(
            "settled_by", TEXT, "who settled first, client or server; null: nobody while it was followed"
        ),
        ColumnSchema("settled_packet", WHOLE, "where that was; in a later file, that file's number"),
        ColumnSchema("latency_ns", WHOLE, "nanoseconds from the first frame to that"),
        *_PARTITIONS,
    ),
    True,
)

_FINDINGS = TableSchema(
    "findings",
    "every rule broken",
    (
        _SET,
        ColumnSchema("rule", TEXT, "id, `amqpscope rules explain` tells about it"),
        ColumnSchema("severity", TEXT, "error, warning, note"),
        ColumnSchema("certainty", TEXT, "certain: the capture proves it; possible"),
        ColumnSchema("requirement", TEXT, "the specification's level"),
        ColumnSchema("message", TEXT, "one sentence with the values"),
        ColumnSchema("spec", TEXT, "document and section"),
        ColumnSchema("edition", TEXT, "of the specification"),
        ColumnSchema("profile", TEXT, "of a vendor, that changed it"),
        _CAPTURE,
        ColumnSchema("packet", WHOLE, "with the offending frame's first octet"),
        *_time("time", "of that packet"),
        ColumnSchema(
            "packets", pa.list_(pa.struct([("capture", TEXT), ("packet", WHOLE)])), "all that matter"
        ),
        _CONNECTION,
        ColumnSchema("peer", TEXT, "at fault: client or server"),
        ColumnSchema("channel", SMALL, "AMQP channel"),
        ColumnSchema("session", WHOLE, "counts begins on the connection"),
        ColumnSchema("link", pa.struct([("name", TEXT), ("sender", TEXT)]), "the link"),
        ColumnSchema("delivery_id", WHOLE, "the delivery"),
        ColumnSchema("expected_condition", TEXT, "the error a correct peer answers with"),
        ColumnSchema(
            "reaction",
            pa.struct(
                [("frame", TEXT), ("condition", TEXT), ("after_seconds", pa.float64()), ("packet", WHOLE)]
            ),
            "what the other peer did",
        ),
        ColumnSchema("evidence", TEXT, "JSON object: the state before, as named values"),
        ColumnSchema("fingerprint", TEXT, "the same over ports and times"),
        *_PARTITIONS,
    ),
    True,
)

TABLES: dict[str, TableSchema] = {
    table.name: table for table in (_FILES, _CONNECTIONS, _LINKS, _FRAMES, _DELIVERIES, _FINDINGS)
}
"""The tables of a lake, by name."""

SEGMENTS = TableSchema(
    "segments",
    "every TCP segment, without its octets",
    (
        _SET,
        _CAPTURE,
        ColumnSchema("packet", WHOLE, "as Wireshark counts"),
        *_time("time", "of that packet"),
        ColumnSchema("source_address", TEXT, "IP address"),
        ColumnSchema("source_port", SMALL, "TCP port"),
        ColumnSchema("destination_address", TEXT, "IP address"),
        ColumnSchema("destination_port", SMALL, "TCP port"),
        ColumnSchema("sequence", WHOLE, "raw sequence number"),
        ColumnSchema("acknowledgement", WHOLE, "raw acknowledgement number, null without the flag"),
        ColumnSchema("flags", SMALL, "the low eight TCP flag bits"),
        ColumnSchema("payload", WHOLE, "octets of payload on the wire"),
        ColumnSchema("cut", WHOLE, "octets of it that were not captured"),
    ),
    False,
)
"""Not in a lake: given by the data source alone."""


def describe(table: TableSchema) -> list[str]:
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
