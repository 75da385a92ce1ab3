"""The tables: columns, types, units, and what they mean. `amqpscope pipeline tables` prints this.

Frames and findings have the names of `read --format ndjson` and `check --format ndjson`. A time is a
timestamp in microseconds, which Spark can compute with. What the capture tells beyond that is in a column
beside it (`_rest_ns`), mostly 0, so `unix_micros(time) * 1000 + time_rest_ns` is the exact time (in DuckDB
`epoch_us`). The fields of frequent frames have columns; what has no fixed form, the fields of other frames
and messages, is JSON text. `date` (of the row's time, UTC) and `protocol` are columns of the files, and the
names of their directories, too.

`SCHEMA_VERSION` counts up when a column comes, or changes its name, type or meaning.
"""

from typing import NamedTuple

import pyarrow as pa

__all__ = [
    "LAKE_TABLES",
    "RUNS",
    "SCHEMA_VERSION",
    "SEGMENTS",
    "TABLES",
    "ColumnSchema",
    "TableSchema",
    "describe",
]

SCHEMA_VERSION = 4

TEXT = pa.string()
WHOLE = pa.int64()
SMALL = pa.int32()
YES = pa.bool_()
TIME = pa.timestamp("us", tz="UTC")


class ColumnSchema(NamedTuple):
    """A column of a table.

    repeats: it has few different numbers or texts. differs: nearly every row has another text.
    """

    name: str
    type: pa.DataType
    meaning: str
    repeats: bool = False
    differs: bool = False


class TableSchema(NamedTuple):
    """A table.

    partitioned: by date and protocol, the last two columns. together: in a row group, rows with the same
    values in these two columns stand one behind the other, in the order in which they were made. bounded: the
    columns of which a row group tells the least and the greatest value; all if there are none.
    """

    name: str
    meaning: str
    columns: tuple[ColumnSchema, ...]
    partitioned: bool
    together: tuple[str, str] | None = None
    bounded: tuple[str, ...] = ()

    @property
    def schema(self) -> pa.Schema:
        """The columns, the meaning of each as its comment."""
        return pa.schema(
            [pa.field(one.name, one.type, metadata={"comment": one.meaning}) for one in self.columns]
        )


_SET = ColumnSchema("capture_set", TEXT, "name of the capture set: the files that form one capture", True)
_CAPTURE = ColumnSchema("capture", TEXT, "name of the capture file", True)
_CONNECTION = ColumnSchema(
    "connection", TEXT, "id of the connection, client>server#n, unique in the capture set", True
)
_NOTES = pa.list_(pa.struct([("code", TEXT), ("packet", WHOLE), ("detail", TEXT)]))
_BOUNDED = ("capture_set", "capture", "packet", "time", "connection")
"""Of the tables with most rows: what queries choose rows by. To find the others' bounds would cost more."""
_PARTITIONS = (
    ColumnSchema("date", pa.date32(), "date of the row's time, in UTC"),
    ColumnSchema("protocol", TEXT, "amqp10, amqp091, tls, ...; null if the connection had no data", True),
)


def _time(name: str, meaning: str) -> tuple[ColumnSchema, ColumnSchema]:
    return ColumnSchema(name, TIME, meaning), ColumnSchema(
        f"{name}_rest_ns", SMALL, f"nanoseconds, 0 to 999, that {name} leaves out of this time", True
    )


def _each_peer(name: str, kind: pa.DataType, meaning: str) -> tuple[ColumnSchema, ...]:
    return tuple(ColumnSchema(f"{peer}_{name}", kind, f"{peer}: {meaning}") for peer in ("client", "server"))


_FILES = TableSchema(
    "files",
    "every input file, and whether it could be read",
    (
        _SET,
        _CAPTURE,
        ColumnSchema(
            "position",
            SMALL,
            "position of the file in its capture set, from 0; null if a number is missing in a series",
        ),
        ColumnSchema("size", WHOLE, "size of the file in octets"),
        ColumnSchema("compression", TEXT, "gzip, zstd, or empty if the file is not compressed"),
        ColumnSchema(
            "identity",
            TEXT,
            "what `--append` recognises the capture by: time of its first packet in nanoseconds since 1970, "
            "number of octets hashed, and their hash; null if there is no packet",
        ),
        ColumnSchema("status", TEXT, "ok; partial: a part of the file was read; unreadable"),
        ColumnSchema(
            "reason",
            TEXT,
            "why the status is not ok: missing, forbidden, empty, "
            "foreign, corrupt, truncated, growing, failed; null if ok",
        ),
        ColumnSchema("detail", TEXT, "the reason in a sentence"),
        ColumnSchema("packets", WHOLE, "number of packets in the file"),
        ColumnSchema("segments", WHOLE, "number of TCP segments in the file"),
        ColumnSchema(
            "notes",
            _NOTES,
            "problems of the capture itself, not of a peer; packet is null if a note is about the whole file",
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
        ColumnSchema("encrypted", YES, "the connection is encrypted"),
        ColumnSchema("client_address", TEXT, "IP address"),
        ColumnSchema("client_port", SMALL, "TCP port"),
        ColumnSchema("server_address", TEXT, "IP address"),
        ColumnSchema("server_port", SMALL, "TCP port"),
        *_time("start", "time of the first packet of the connection"),
        *_time("end", "time of the last packet of the connection"),
        *_each_peer("octets", WHOLE, "octets of the peer's stream that were captured"),
        *_each_peer("missing", WHOLE, "octets of the peer's stream that were not captured"),
        *_each_peer("retransmitted", WHOLE, "octets that the peer sent more than once"),
        *_each_peer("captured_twice", WHOLE, "octets that were sent once, but captured at two points"),
        ColumnSchema("midstream", YES, "the beginning of the connection was not captured"),
        *_each_peer(
            "tcp_ended",
            TEXT,
            "how the peer ended its stream: fin, rst, or null if still open at the end of the capture",
        ),
        *_each_peer("frames", WHOLE, "number of frames that the peer sent"),
        *_each_peer(
            "container", TEXT, "container-id in the peer's open; in 0-9-1 connection_name or cluster_name"
        ),
        *_each_peer("product", TEXT, "product and version in the peer's properties"),
        ColumnSchema("sasl_mechanism", TEXT, "SASL mechanism that the client chose"),
        ColumnSchema("sasl_outcome", TEXT, "outcome of SASL: ok, auth, sys, ...; in 0-9-1 ok or refused"),
        ColumnSchema("sessions", WHOLE, "number of sessions begun; in 0-9-1 of channels opened"),
        *_each_peer("messages", WHOLE, "number of messages that the peer sent"),
        *_each_peer("message_octets", WHOLE, "octets of the messages that the peer sent"),
        ColumnSchema("frames_with_problems", WHOLE, "number of malformed frames"),
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
            "errors that a peer reported, and the frame or outcome (in) that reported each error",
        ),
        ColumnSchema(
            "errors_not_listed", WHOLE, "number of reported errors that the column errors leaves out"
        ),
        ColumnSchema(
            "links_not_listed", WHOLE, "number of links of this connection that the table links leaves out"
        ),
        ColumnSchema("notes", _NOTES, "problems in the capture of this connection"),
        *_PARTITIONS,
    ),
    True,
)

_LINKS = TableSchema(
    "links",
    "every link of every connection",
    (
        _SET,
        _CONNECTION,
        ColumnSchema(
            "number", SMALL, "number of the link on its connection, in the order of the first attach, from 0"
        ),
        ColumnSchema("name", TEXT, "name of the link in its attach"),
        ColumnSchema("sender", TEXT, "peer that sends: client or server"),
        ColumnSchema("source", TEXT, "address of the source"),
        ColumnSchema("target", TEXT, "address of the target, or coordinator"),
        ColumnSchema("transfers", WHOLE, "number of transfer frames"),
        ColumnSchema("messages", WHOLE, "number of complete messages"),
        ColumnSchema("aborted", WHOLE, "number of deliveries that the sender aborted"),
        ColumnSchema("octets", WHOLE, "octets of the messages on the link"),
        ColumnSchema(
            "ended",
            TEXT,
            "how the link ended (detached or closed), and by which peer; null if it did not end",
        ),
        ColumnSchema("error", TEXT, "error condition in the detach"),
        *_PARTITIONS,
    ),
    True,
)


def _field(
    name: str, kind: pa.DataType, frames: str, meaning: str = "", repeats: bool = True
) -> ColumnSchema:
    """A field of frequent frames. frames: which of them have it. meaning: if the name does not say it."""
    own = f"field {name.replace('_', '-')} of {frames}"
    return ColumnSchema(name, kind, meaning or own, repeats and kind in (WHOLE, TEXT))


_FIELDS = (
    _field("handle", WHOLE, "transfer and flow"),
    _field(
        "delivery_id",
        WHOLE,
        "",
        "field delivery-id of transfer; delivery-tag of basic.deliver, basic.ack and basic.nack",
        False,
    ),
    _field("delivery_tag", TEXT, "", "field delivery-tag of transfer, in hex", False)._replace(differs=True),
    _field("message_format", WHOLE, "transfer"),
    _field("settled", YES, "transfer and disposition"),
    _field("more", YES, "transfer"),
    _field("rcv_settle_mode", SMALL, "transfer"),
    _field(
        "state", TEXT, "", "name of the delivery state of transfer and disposition; details are in `fields`"
    ),
    _field("resume", YES, "transfer"),
    _field("aborted", YES, "transfer"),
    _field("batchable", YES, "transfer and disposition"),
    _field("role", YES, "", "field role of disposition: true for the receiver"),
    _field("first", WHOLE, "disposition", repeats=False),
    _field("last", WHOLE, "disposition", repeats=False),
    _field("next_incoming_id", WHOLE, "flow", repeats=False),
    _field("incoming_window", WHOLE, "flow"),
    _field("next_outgoing_id", WHOLE, "flow", repeats=False),
    _field("outgoing_window", WHOLE, "flow"),
    _field("delivery_count", WHOLE, "flow", repeats=False),
    _field("link_credit", WHOLE, "flow"),
    _field("available", WHOLE, "flow"),
    _field("drain", YES, "flow"),
    _field("echo", YES, "flow"),
    _field("exchange", TEXT, "basic.publish and basic.deliver"),
    _field("routing_key", TEXT, "basic.publish and basic.deliver"),
    _field("consumer_tag", TEXT, "basic.deliver"),
    _field("mandatory", YES, "basic.publish"),
    _field("immediate", YES, "basic.publish"),
    _field("redelivered", YES, "basic.deliver"),
    _field("multiple", YES, "basic.ack and basic.nack"),
    _field("requeue", YES, "basic.nack"),
    _field("body_size", WHOLE, "content-header"),
    _field("properties", TEXT, "", "JSON object of the properties in a content-header"),
)
"""Of frames as they are in the final AMQP 1.0 and in AMQP 0-9-1."""

_FRAMES = TableSchema(
    "frames",
    "every frame",
    (
        _SET,
        _CAPTURE,
        ColumnSchema("packet", WHOLE, "packet with the frame's first octet, by Wireshark's number"),
        *_time("time", "time of that packet"),
        _CONNECTION,
        ColumnSchema("peer", TEXT, "peer that sent the frame: client or server", True),
        ColumnSchema(
            "kind",
            TEXT,
            "kind of the frame: header, amqp, sasl, method, content-header,"
            " body, heartbeat, unknown, skipped",
            True,
        ),
        ColumnSchema("name", TEXT, "name of the frame: transfer, sasl-init, basic.publish, ...", True),
        ColumnSchema("channel", SMALL, "AMQP channel, null if the frame has none", True),
        ColumnSchema("offset", WHOLE, "offset of the frame in the sender's stream, in octets"),
        ColumnSchema("size", WHOLE, "size of the frame in octets", True),
        ColumnSchema(
            "fields",
            TEXT,
            "JSON object of the frame's fields by their names in the specification, with secrets hidden;"
            " null if other columns have all fields, or the frame has none",
        ),
        ColumnSchema(
            "problems",
            pa.list_(pa.struct([("code", TEXT), ("offset", WHOLE), ("path", TEXT), ("reason", TEXT)])),
            "what is malformed in the frame; offset is in octets from the frame's beginning",
        ),
        ColumnSchema(
            "last_packet",
            WHOLE,
            "packet with the frame's last octet, if it is not the first"
            " one; if it is in a later file, the packet number in that "
            "file",
        ),
        ColumnSchema("missing", WHOLE, "octets of the frame that were not captured, if any"),
        ColumnSchema("payload", WHOLE, "octets of message content in a transfer or body", True),
        ColumnSchema("link", TEXT, "name of the link that the frame is about", True),
        ColumnSchema("address", TEXT, "address of that link", True),
        ColumnSchema(
            "message",
            TEXT,
            "JSON object of the message that this frame completes, without the body; only where `fields` is"
            " not null",
        ),
        *_FIELDS,
        *_PARTITIONS,
    ),
    True,
    ("connection", "peer"),
    _BOUNDED,
)

_DELIVERIES = TableSchema(
    "deliveries",
    "every delivery, and how it was settled",
    (
        _SET,
        _CAPTURE,
        ColumnSchema(
            "packet",
            WHOLE,
            "packet with the first frame of the delivery: transfer, "
            "basic.publish, basic.deliver or basic.get-ok",
        ),
        *_time("time", "time of that packet"),
        _CONNECTION,
        ColumnSchema("sender", TEXT, "peer that sends: client or server", True),
        ColumnSchema("channel", SMALL, "channel of the sender", True),
        ColumnSchema("link", TEXT, "name of the link; in 0-9-1 the consumer-tag", True),
        ColumnSchema(
            "address",
            TEXT,
            "address of the link; in 0-9-1 exchange/routing-key, or the "
            "routing key alone for the default exchange",
            True,
        ),
        ColumnSchema(
            "delivery_id",
            WHOLE,
            "delivery-id of the first transfer; in 0-9-1 the delivery-tag, or the number "
            "of the publish for confirms",
        ),
        ColumnSchema("delivery_tag", TEXT, "delivery-tag in hex; AMQP 1.0 only", differs=True),
        ColumnSchema("transfers", WHOLE, "number of transfer or body frames", True),
        ColumnSchema("payload", WHOLE, "octets of the message", True),
        ColumnSchema("complete", YES, "the end of the message was captured"),
        ColumnSchema("aborted", YES, "the sender aborted the delivery"),
        ColumnSchema(
            "outcome",
            TEXT,
            "outcome of the delivery: accepted, rejected, released, ..., ack, nack "
            "requeue, ...; null if no outcome was sent",
            True,
        ),
        ColumnSchema("condition", TEXT, "error condition in the outcome", True),
        ColumnSchema(
            "settled_by",
            TEXT,
            "peer that settled first, client or server; null if no peer"
            " settled the delivery while it was followed",
            True,
        ),
        ColumnSchema(
            "settled_packet",
            WHOLE,
            "packet of the first settlement; if it is in a later file, the packet number in that file",
        ),
        ColumnSchema(
            "latency_ns", WHOLE, "nanoseconds from the first frame of the delivery to the first settlement"
        ),
        *_PARTITIONS,
    ),
    True,
    ("connection", "sender"),
    _BOUNDED,
)

_FINDINGS = TableSchema(
    "findings",
    "every finding: a rule that a peer broke",
    (
        _SET,
        ColumnSchema("rule", TEXT, "id of the rule (see `amqpscope rules explain`)"),
        ColumnSchema("severity", TEXT, "severity of the finding: error, warning, note"),
        ColumnSchema("certainty", TEXT, "certain if the capture proves the fault, otherwise possible"),
        ColumnSchema("requirement", TEXT, "requirement level in the specification (MUST, SHOULD, ...)"),
        ColumnSchema("message", TEXT, "the finding in one sentence, with its values"),
        ColumnSchema("spec", TEXT, "document and section of the specification"),
        ColumnSchema("edition", TEXT, "edition of the specification (final, csd01, csprd02, draft2011)"),
        ColumnSchema("profile", TEXT, "profile of a product that lowered the severity, null if none did"),
        ColumnSchema("overridden", TEXT, "severity of the rule, if the configuration sets another one"),
        ColumnSchema(
            "suppressed",
            pa.struct([("by", TEXT), ("reason", TEXT)]),
            "why the finding does not count: it is in the allow-list (allow) or in the baseline; else null",
        ),
        _CAPTURE,
        ColumnSchema("packet", WHOLE, "packet with the first octet of the frame at fault"),
        *_time("time", "time of that packet"),
        ColumnSchema(
            "packets",
            pa.list_(pa.struct([("capture", TEXT), ("packet", WHOLE)])),
            "all packets that matter to the finding",
        ),
        _CONNECTION,
        ColumnSchema("peer", TEXT, "peer at fault: client or server"),
        ColumnSchema("channel", SMALL, "AMQP channel"),
        ColumnSchema("session", WHOLE, "number of the session on its connection, in the order of the begins"),
        ColumnSchema(
            "link",
            pa.struct([("name", TEXT), ("sender", TEXT)]),
            "name of the link, and the peer that sends on it",
        ),
        ColumnSchema("delivery_id", WHOLE, "delivery-id of the delivery"),
        ColumnSchema("expected_condition", TEXT, "error condition that a correct peer answers with"),
        ColumnSchema(
            "reaction",
            pa.struct(
                [("frame", TEXT), ("condition", TEXT), ("after_seconds", pa.float64()), ("packet", WHOLE)]
            ),
            "how the other peer reacted",
        ),
        ColumnSchema("evidence", TEXT, "JSON object of the state before the frame, as named values"),
        ColumnSchema(
            "fingerprint",
            TEXT,
            "fingerprint of the finding, equal for equal findings with other ports and times",
        ),
        *_PARTITIONS,
    ),
    True,
)

_DIAGNOSES = TableSchema(
    "diagnoses",
    "every diagnosis: which peer waits for the other one, since when, and why",
    (
        _SET,
        ColumnSchema("code", TEXT, "code of the diagnosis (see `amqpscope rules explain`)"),
        ColumnSchema("subject", TEXT, "what the diagnosis is about, such as the name of a link"),
        ColumnSchema(
            "whose_move", TEXT, "peer that has to act: client or server; null if neither or both have to"
        ),
        _CAPTURE,
        ColumnSchema("packet", WHOLE, "packet since which the diagnosis holds; null if no packet shows it"),
        ColumnSchema(
            "ended_packet",
            WHOLE,
            "packet that ended what is diagnosed; if it is in a later file, the packet number in that file;"
            " null if it still lasted at the end of the capture",
        ),
        ColumnSchema("seconds", pa.float64(), "how long it lasted, in seconds; null if time does not matter"),
        _CONNECTION,
        ColumnSchema("figures", TEXT, "JSON object of the numbers and names that show the diagnosis"),
        ColumnSchema("message", TEXT, "the diagnosis in one sentence, with its values"),
        ColumnSchema(
            "packets",
            pa.list_(pa.struct([("capture", TEXT), ("packet", WHOLE)])),
            "all packets that matter to the diagnosis",
        ),
        ColumnSchema("date", pa.date32(), "date of the begin of the connection, in UTC"),
        _PARTITIONS[1],
    ),
    True,
)

TABLES: dict[str, TableSchema] = {
    table.name: table for table in (_FILES, _CONNECTIONS, _LINKS, _FRAMES, _DELIVERIES, _FINDINGS, _DIAGNOSES)
}
"""The tables of a lake, by name."""

RUNS = TableSchema(
    "runs",
    "every run that has written to the lake; the last run says which versions of the tables are read",
    (
        ColumnSchema("run", TEXT, "id of the run"),
        ColumnSchema("number", WHOLE, "number of the run, higher than that of all earlier runs"),
        ColumnSchema(
            "kind",
            TEXT,
            "replace: the run replaced all rows; replace-day: the run replaced the rows of one day; append: "
            "the run added rows; compact: the run put small files together, the rows are the same",
        ),
        *_time("time", "time when the run was committed"),
        ColumnSchema("seconds", pa.float64(), "how long the run took"),
        ColumnSchema("files", WHOLE, "number of captures that the run read"),
        ColumnSchema("octets", WHOLE, "octets of these captures that the run read"),
        ColumnSchema("sources", pa.list_(TEXT), "the sources that the run was given"),
        ColumnSchema("options", TEXT, "JSON object of the options that shape the tables"),
        ColumnSchema(
            "tables",
            pa.list_(pa.struct([("name", TEXT), ("version", WHOLE), ("rows", WHOLE)])),
            "the tables of the lake after the run: version of the Delta table, and rows",
        ),
        ColumnSchema("tables_version", SMALL, "version of the columns (`amqpscope pipeline tables`)"),
        ColumnSchema("package", TEXT, "version of amqpscope"),
        ColumnSchema(
            "lag",
            pa.float64(),
            "seconds from the last change of the newest capture until the run was committed; null if the run "
            "was not a batch of `watch`",
        ),
    ),
    False,
)
"""Which versions of the tables belong together."""

LAKE_TABLES = TABLES | {RUNS.name: RUNS}
"""All tables of a lake, and all that a query can read."""

SEGMENTS = TableSchema(
    "segments",
    "every TCP segment, without its payload",
    (
        _SET,
        _CAPTURE,
        ColumnSchema("packet", WHOLE, "packet number, as in Wireshark"),
        *_time("time", "time of that packet"),
        ColumnSchema("source_address", TEXT, "IP address"),
        ColumnSchema("source_port", SMALL, "TCP port"),
        ColumnSchema("destination_address", TEXT, "IP address"),
        ColumnSchema("destination_port", SMALL, "TCP port"),
        ColumnSchema("sequence", WHOLE, "raw sequence number"),
        ColumnSchema("acknowledgement", WHOLE, "raw acknowledgement number, null without the flag"),
        ColumnSchema("flags", SMALL, "the low eight TCP flag bits"),
        ColumnSchema("payload", WHOLE, "octets of payload on the wire"),
        ColumnSchema("cut", WHOLE, "octets of the payload that were not captured"),
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
