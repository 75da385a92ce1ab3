"""Rows of the tables from what a `ConnectionTable` gives out.

`Rows` gathers rows until there are enough for a batch, and counts what the exit status depends on. `Recorder`
makes the rows of one capture set. Text that came off the wire is put into columns as it is: whoever prints a
table has to escape it.
"""

import json
from collections import Counter
from collections.abc import Collection, Iterator
from datetime import date
from typing import Any, Final, NamedTuple

import pyarrow as pa

from amqpscope.analysis.connection import ConnectionAnalysis
from amqpscope.analysis.table import ConnectionTable
from amqpscope.diagnoses.capture import CaptureDiagnoses
from amqpscope.diagnoses.connection import ConnectionDiagnosis
from amqpscope.diagnoses.several import Placed, Several
from amqpscope.model.diagnosis import Diagnosis
from amqpscope.model.finding import Finding
from amqpscope.model.note import INTERNAL, Note, mishap
from amqpscope.model.passwords import without_password
from amqpscope.model.records import CLIENT, SERVER, Connection, FrameRecord, FrameWatch
from amqpscope.pipeline.columns import TableColumns, fits
from amqpscope.pipeline.deliveries import DeliveryLog
from amqpscope.pipeline.delivery_columns import DeliveryColumns
from amqpscope.pipeline.frame_columns import Days, FrameColumns
from amqpscope.pipeline.packets import in_text, split
from amqpscope.pipeline.schemas import TABLES
from amqpscope.policy.policy import Policy, Rulings
from amqpscope.protocols import protocol_of, protocol_of_kind
from amqpscope.report.connection_summary import ConnectionOverview
from amqpscope.report.findings import decided_object
from amqpscope.report.json_renderers import JsonRenderers
from amqpscope.report.links import LinkNames
from amqpscope.report.summary import add_frame, error_object
from amqpscope.rules.editions import following
from amqpscope.rules.profiles import under
from amqpscope.tracking.events import Conversation
from dissectors.wire import i64

__all__ = ["USUAL_TERMS", "Recorder", "RowTerms", "Rows"]

BATCH_ROWS = 16_384
BATCH_TEXT = 8 * 1024 * 1024
"""Rows of a table, and characters of text made for rows, after which a batch is given out."""

_STATUS: Final = [column.name for column in TABLES["files"].columns].index("status")
_REASON: Final = [column.name for column in TABLES["files"].columns].index("reason")

_USUAL_POLICY: Final = Policy()


class RowTerms(NamedTuple):
    """How captures are read and judged for their rows.

    policy: what findings are held to. dialect: of AMQP 1.0 that all peers speak, "" to find out by the
    frames. secrets: where the secrets of TLS are asked for (`pipeline.secrets.SecretsAddress`), if anywhere,
    or these secrets, in a worker that has read them. with_json: the table `frames` has all
    fields and messages as JSON. only: columns, and the values in them that rows are wanted of; rows with
    others may be left out.
    """

    policy: Policy = _USUAL_POLICY
    dialect: str = ""
    secrets: Any = None
    with_json: bool = False
    only: tuple[tuple[str, frozenset[str]], ...] = ()


USUAL_TERMS: Final = RowTerms()


class Rows:
    """Rows of several tables. Only those of `wanted` tables are kept; all are counted.

    counts: findings that may count by (`finding`, severity, certainty), those that are allowed or known by
    (`suppressed`,), the use of entries of the allow-list by (`allowed`, number), diagnoses by (`diagnosis`,
    code), connections by (`connection`, protocol), files by (`file`, status) and, if they are not there,
    (`missing`,), frames by (`frame`,), and what amqpscope itself
    failed on by (`mishap`, id of the connection, what is shown about it).
    """

    def __init__(self, wanted: Collection[str] = tuple(TABLES), terms: RowTerms = USUAL_TERMS) -> None:
        self.wanted = frozenset(wanted)
        self.terms = terms
        self.rulings = Rulings(terms.policy)
        self.counts: Counter[tuple[str, ...]] = Counter()
        self.frames: FrameColumns = FrameColumns(terms.with_json)
        self.deliveries: DeliveryColumns = DeliveryColumns()
        own: dict[str, TableColumns] = {"frames": self.frames, "deliveries": self.deliveries}
        self._tables: dict[str, TableColumns] = {name: own.get(name) or TableColumns(name) for name in wanted}

    @property
    def judges(self) -> bool:
        """Whether findings are wanted, or diagnoses, which depend on them."""
        return not self.wanted.isdisjoint(("findings", "diagnoses"))

    def add(self, table: str, row: tuple[Any, ...], text: int = 0) -> None:
        """One row, as the values of all columns. text: characters of JSON in it.

        Not of frames and deliveries.
        """
        columns = self._tables.get(table)
        if columns is not None:
            columns.add(row)
            columns.text += text

    def add_file(self, row: tuple[Any, ...]) -> None:
        """The row of a file (`files.file_row`): it is counted by its status, too."""
        self.counts["file", row[_STATUS]] += 1
        self.counts["missing",] += row[_REASON] == "missing"
        self.add("files", row)

    def batches(self, all_of_them: bool = False) -> Iterator[tuple[str, pa.RecordBatch]]:
        """Tables and batches of their rows, as far as these are large enough."""
        text: i64 = 0
        for columns in self._tables.values():
            text += columns.text
        everything = all_of_them or text >= BATCH_TEXT
        for name, columns in self._tables.items():
            if columns.rows and (everything or columns.rows >= BATCH_ROWS):
                yield name, columns.take()


class _Followed(FrameWatch):
    """What is put together from the frames of one connection.

    conversation: what follows it. own: the names of links do not have it take the frames.
    watch: what diagnoses the connection, None if that is not wanted.
    """

    def __init__(self, recorder: "Recorder", connection: Connection, names: LinkNames) -> None:
        super().__init__()
        own = protocol_of(connection.protocol).conversation()
        conversation: Conversation = own or names.conversation(connection)
        self.recorder: Recorder = recorder
        self.conversation: Conversation = conversation
        self.own: bool = own is not None
        self.watch: ConnectionDiagnosis | None = None
        if recorder.watches is not None:
            self.watch = recorder.watches.watch(connection, conversation)
        self.summary = ConnectionOverview(connection, conversation)
        self.log: DeliveryLog | None = None

    def add(self, record: FrameRecord) -> None:
        try:
            self.recorder.frame(record, self)
        except Exception as error:
            self.recorder.fail(error, record.connection, record.packet, record.time)


class Recorder(FrameWatch):
    """Makes the rows of one capture set. captures: its files' names in the tables, by position.

    It takes each frame when the frame is given out, and all else when it is asked to (`take`).

    several: what its connections share, None if all of them are analysed here. own: the names of the files
    where they are, which findings are held to; None if these are the same.
    """

    def __init__(
        self,
        rows: Rows,
        capture_set: str,
        captures: list[str],
        several: Several | None = None,
        own: list[str] | None = None,
    ) -> None:
        super().__init__()
        self._rows = rows
        self._set = capture_set
        self._captures = captures
        # What the files are called where they are.
        self._own: list[str] = captures if own is None else own
        self._days = Days()
        self._names = LinkNames()
        self._renderers = JsonRenderers()
        self._followed: dict[Connection, _Followed] = {}
        self._notes: dict[Connection, list[Note]] = {}
        self._of_files: list[Note] = []
        self._with_frames = "frames" in rows.wanted
        only = dict(rows.terms.only)
        self._kinds: frozenset[str] | None = only.get("kind")
        self._protocols: frozenset[str] | None = only.get("protocol")
        self._with_summaries = not rows.wanted.isdisjoint(("connections", "links"))
        self._with_deliveries = "deliveries" in rows.wanted
        # What diagnoses the connections, if diagnoses are wanted.
        self.watches: CaptureDiagnoses | None = None
        if "diagnoses" in rows.wanted:
            self.watches = CaptureDiagnoses(rows.terms.policy.limits, several)
        self._makes_rows: bool = self._with_frames or self._with_summaries or self._with_deliveries
        self._follows: bool = self._with_summaries or self._with_deliveries or self.watches is not None

    @property
    def needs_frames(self) -> bool:
        """Whether any table is wanted that frames are needed for."""
        return self._makes_rows or self.watches is not None

    def of(self, connection: Connection) -> FrameWatch:
        if not self._makes_rows and self.watches is not None:
            return self.watches.of(connection)
        followed = _Followed(self, connection, self._names)
        self._followed[connection] = followed
        return followed

    def take(self, table: ConnectionTable) -> None:
        """All that has come out since the last time, but for the frames."""
        self.take_findings(table.output.take_findings())
        for note in table.output.notes:
            self._note(note)
        table.output.notes.clear()
        for analysis in table.kept.take_ended():
            try:
                self._connection(analysis)
            except Exception as error:
                self.fail(error, analysis.connection)

    def _note(self, note: Note) -> None:
        if note.code == INTERNAL:
            which = "" if note.connection is None else note.connection.id
            packet = split(int(note.packet))[1]
            shown = f"packet {packet}: {note.detail}" if packet else note.detail
            self._rows.counts["mishap", which, shown] += 1
        if note.connection is None:
            self._of_files.append(note)
        else:
            self._notes.setdefault(note.connection, []).append(note)

    def fail(self, error: Exception, connection: Connection | None, packet: i64 = 0, time: i64 = 0) -> None:
        """An error of amqpscope itself came up in the rows of a connection, at a packet (0: at none) and time
        (ns); None: when connections were compared with each other. It is reported once of each.

        To be called where `error` is caught; an error for want of memory is raised again.
        """
        if isinstance(error, MemoryError):
            raise error
        if connection is None or not connection.failed:
            what = "making rows of this connection" if connection else "comparing connections with each other"
            self._note(mishap(error, packet, time, connection, what))

    def take_findings(self, findings: list[Finding]) -> None:
        """Findings, however they were made."""
        policy = self._rows.terms.policy
        found = under(following(findings, policy.spec), policy.profile)
        if self.watches is not None:
            self.watches.judge(found)
        for finding in found:
            self._finding(finding)

    def finish(self) -> None:
        """All connections are over: the diagnoses that only several connections give."""
        if self.watches is not None:
            self.take_placed(self.watches.several.churned())

    def take_placed(self, diagnoses: list[Placed]) -> None:
        """Diagnoses of connections that were over before."""
        for one in diagnoses:
            self._diagnosis(one.diagnosis, (self._days.of(one.began), one.protocol or None))

    def take_file_notes(self) -> list[Note]:
        """The notes about files since the last call."""
        notes = self._of_files
        self._of_files = []
        return notes

    def frame(self, record: FrameRecord, of: _Followed) -> None:
        """The next frame of a connection."""
        log = of.log
        if self._with_deliveries and log is None:
            protocol = protocol_of_kind(record.frame.kind, record.frame.dialect)
            if protocol is not None:
                log = protocol.delivery_log(self._names, record.connection, of.conversation)
                of.log = log
        watch = of.watch
        if watch is not None:
            watch.prepare(record)
        link = self._names.of(record)
        if of.own and self._follows:
            of.conversation.take(record)
        if watch is not None:
            watch.follow(record)
        renderer = self._renderers.of(record.frame)
        if self._with_summaries:
            add_frame(of.summary, record, link, renderer)
        if log is not None:
            for delivery in log.take(record, link):
                self._rows.deliveries.add_delivery(self._set, self._captures, record.connection, delivery)
        if self._with_frames and self._wants(record):
            self._rows.frames.add_frame(self._set, self._captures, record, link, renderer, self._names)

    def _wants(self, record: FrameRecord) -> bool:
        """Whether a row of a frame is wanted."""
        if self._kinds is not None and record.frame.kind not in self._kinds:
            return False
        return self._protocols is None or record.connection.protocol in self._protocols

    def _finding(self, finding: Finding) -> None:
        position, packet = split(int(finding.packet))
        capture = self._captures[position]
        if not self._rows.rulings.decide(finding, self._own[position]):
            return
        reported = decided_object(finding, capture)
        packets = [split(int(one["packet"])) for one in reported["packets"]]
        reaction = reported["reaction"]
        if reaction is not None:
            reaction["packet"] = split(reaction["packet"])[1]
        time = int(finding.time)
        reported |= {
            "capture_set": self._set,
            "packet": packet,
            "message": in_text(
                reported["message"], [int(one["packet"]) for one in reported["packets"]], self._captures
            ),
            "packets": [{"capture": self._captures[of], "packet": number} for of, number in packets],
            "time": time // 1000,
            "time_rest_ns": time % 1000,
            "delivery_id": _whole(reported["delivery_id"]),
            "evidence": json.dumps(reported["evidence"]),
            "date": self._days.of(time),
        }
        counts = self._rows.counts
        if reported["suppressed"] is None:
            counts["finding", reported["severity"], reported["certainty"]] += 1
        else:
            counts["suppressed",] += 1
        row = tuple(reported[column.name] for column in TABLES["findings"].columns)
        self._rows.add("findings", row, len(reported["evidence"]))

    def _diagnosis(self, diagnosis: Diagnosis, partitions: tuple[date, str | None]) -> None:
        position, packet = split(int(diagnosis.packet))
        reported = diagnosis.json()
        packets = [split(int(one)) for one in diagnosis.packets]
        reported |= {
            "capture_set": self._set,
            "capture": self._captures[position],
            "packet": packet or None,
            "ended_packet": split(int(diagnosis.ended_packet))[1] or None,
            "figures": json.dumps(reported["figures"]),
            "message": in_text(
                diagnosis.message, [int(diagnosis.packet), *diagnosis.packets], self._captures
            ),
            "packets": [{"capture": self._captures[of], "packet": number} for of, number in packets],
            "date": partitions[0],
            "protocol": partitions[1],
        }
        row = tuple(reported[column.name] for column in TABLES["diagnoses"].columns)
        self._rows.counts["diagnosis", diagnosis.code] += 1
        self._rows.add("diagnoses", row, len(reported["figures"]))

    def _connection(self, analysis: ConnectionAnalysis) -> None:
        """A connection is over."""
        connection = analysis.connection
        followed = self._followed.pop(connection, None) or _Followed(self, connection, self._names)
        if followed.log is not None:
            for delivery in followed.log.finish():
                self._rows.deliveries.add_delivery(self._set, self._captures, connection, delivery)
        self._names.forget(connection)
        summary = followed.summary
        notes = self._notes.pop(connection, [])
        counts = self._rows.counts
        counts["connection", analysis.spoken_by_both()] += 1
        counts["frame",] += int(connection.frames)
        client = max(int(connection.client), 0)
        facts = [analysis.tcp.facts(client), analysis.tcp.facts(1 - client)]
        seen = [fact for fact in facts if fact.segments]
        start = min((int(fact.first_time) for fact in seen), default=0)
        end = max((int(fact.last_time) for fact in seen), default=0)
        peers = (CLIENT, SERVER)
        partitions = (self._days.of(start), connection.protocol or None)
        if self.watches is not None:
            for one in self.watches.end(analysis):
                self._diagnosis(one, partitions)
            self.watches.several.began(connection.id, start, connection.protocol)
        if not self._with_summaries:
            return
        errors = [error_object(error) for error in summary.errors.values()]
        self._rows.add(
            "connections",
            (
                self._set,
                connection.id,
                connection.encrypted,
                *connection.end(client),
                *connection.end(1 - client),
                *divmod(start, 1000),
                *divmod(end, 1000),
                *(int(fact.delivered) for fact in facts),
                *(int(fact.missing) for fact in facts),
                *(int(fact.retransmitted) for fact in facts),
                *(int(fact.duplicated) for fact in facts),
                any(fact.midstream for fact in facts),
                *(fact.ended or None for fact in facts),
                *(summary.of(peer).frames for peer in peers),
                *(summary.of(peer).container or None for peer in peers),
                *(summary.of(peer).product or None for peer in peers),
                summary.mechanism or None,
                summary.sasl_outcome or None,
                summary.sessions,
                *(summary.of(peer).messages for peer in peers),
                *(summary.of(peer).message_octets for peer in peers),
                summary.problems,
                errors,
                summary.errors_dropped,
                summary.links_dropped,
                [
                    {"code": note.code, "packet": split(int(note.packet))[1] or None, "detail": note.detail}
                    for note in notes
                ],
                *partitions,
            ),
        )
        self._links(connection, summary, partitions)

    def _links(
        self, connection: Connection, summary: ConnectionOverview, partitions: tuple[date, str | None]
    ) -> None:
        """The links of a connection that is over."""
        for number, link in enumerate(summary.links.values()):
            self._rows.add(
                "links",
                (
                    self._set,
                    connection.id,
                    number,
                    without_password(link.link.name),
                    link.link.sender,
                    link.source,
                    link.target,
                    link.transfers,
                    link.messages,
                    link.aborted,
                    link.octets,
                    link.ended or None,
                    link.error or None,
                    *partitions,
                ),
            )


def _whole(number: int | None) -> int | None:
    """A number of the wire in a column of 64 bits with a sign: null if it is too large for that."""
    return number if number is not None and fits(number) else None
