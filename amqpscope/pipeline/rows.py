"""Rows of the tables from what a `ConnectionTable` gives out.

`Rows` gathers rows until there are enough for a batch, and counts what the exit status depends on. `Recorder`
makes the rows of one capture set. Text that came off the wire is put into columns as it is: whoever prints a
table has to escape it.
"""

import json
from collections import Counter
from collections.abc import Collection, Iterator
from datetime import date, timedelta
from typing import Any, Final, NamedTuple

import pyarrow as pa

from amqpscope.analysis.connection import ConnectionAnalysis
from amqpscope.analysis.table import ConnectionTable
from amqpscope.diagnoses.capture import CaptureDiagnoses
from amqpscope.diagnoses.several import Placed, Several
from amqpscope.model.diagnosis import Diagnosis
from amqpscope.model.finding import Finding
from amqpscope.model.note import INTERNAL, Note, mishap
from amqpscope.model.passwords import without_password
from amqpscope.model.records import CLIENT, SERVER, Connection, FrameRecord
from amqpscope.pipeline.deliveries import DeliveryLog, DeliveryRow
from amqpscope.pipeline.packets import in_text, split
from amqpscope.pipeline.schemas import TABLES
from amqpscope.policy.policy import Policy, Rulings
from amqpscope.protocols import protocol_of, protocol_of_kind
from amqpscope.report.connection_summary import ConnectionOverview
from amqpscope.report.findings import decided_object
from amqpscope.report.json_form import FrameForm
from amqpscope.report.links import LinkNames
from amqpscope.report.secrets import problem_path
from amqpscope.report.summary import add_frame, error_object
from amqpscope.rules.editions import following
from amqpscope.rules.profiles import under
from amqpscope.tracking.amqp10.identity import Link
from amqpscope.tracking.events import Conversation
from dissectors.wire import i64

__all__ = ["USUAL_TERMS", "Recorder", "RowTerms", "Rows"]

BATCH_ROWS = 16_384
BATCH_TEXT = 8 * 1024 * 1024
"""Rows, and characters of JSON, of a table after which a batch of it is given out."""

_STATUS: Final = [column.name for column in TABLES["files"].columns].index("status")
_REASON: Final = [column.name for column in TABLES["files"].columns].index("reason")

_NONE: list[Any] = []
"""The problems of most frames: one list for all, which nobody puts anything into."""

_LARGEST: Final = 2**63 - 1
"""What a column of whole numbers holds. A delivery-tag of 0-9-1 may be larger; no broker counts so far."""

_EPOCH = date(1970, 1, 1)
_DAY: Final = 86_400 * 1_000_000_000


_USUAL_POLICY: Final = Policy()


class RowTerms(NamedTuple):
    """How captures are read and judged for their rows.

    policy: what findings are held to. dialect: of AMQP 1.0 that all peers speak, "" to find out by the
    frames. secrets: where the secrets of TLS are asked for (`pipeline.secrets.SecretsAddress`), if anywhere.
    """

    policy: Policy = _USUAL_POLICY
    dialect: str = ""
    secrets: Any = None


USUAL_TERMS: Final = RowTerms()


class Rows:
    """Rows of several tables. Only those of `wanted` tables are kept; all are counted.

    They are kept by column: a million tuples would each be looked at by the garbage collector, again and
    again, for a quarter of all the time.

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
        self._columns: dict[str, list[list[Any]]] = {name: _columns(name) for name in wanted}
        self._text = 0

    @property
    def judges(self) -> bool:
        """Whether findings are wanted, or diagnoses, which depend on them."""
        return not self.wanted.isdisjoint(("findings", "diagnoses"))

    def add(self, table: str, row: tuple[Any, ...], text: int = 0) -> None:
        """One row. text: characters of JSON in it."""
        columns = self._columns.get(table)
        if columns is not None:
            number: i64 = 0
            for column in columns:
                column.append(row[number])
                number += 1
            self._text += text

    def add_file(self, row: tuple[Any, ...]) -> None:
        """The row of a file (`files.file_row`): it is counted by its status, too."""
        self.counts["file", row[_STATUS]] += 1
        self.counts["missing",] += row[_REASON] == "missing"
        self.add("files", row)

    def batches(self, all_of_them: bool = False) -> Iterator[tuple[str, pa.RecordBatch]]:
        """Tables and batches of their rows, as far as these are large enough."""
        everything = all_of_them or self._text >= BATCH_TEXT
        for name, columns in self._columns.items():
            rows = len(columns[0])
            if rows and (everything or rows >= BATCH_ROWS):
                self._columns[name] = _columns(name)
                yield name, _batch(TABLES[name].schema, columns)
        if everything:
            self._text = 0


def _columns(table: str) -> list[list[Any]]:
    return [[] for _ in TABLES[table].columns]


def _batch(schema: pa.Schema, columns: list[list[Any]]) -> pa.RecordBatch:
    arrays = []
    for values, field in zip(columns, schema, strict=True):
        try:
            arrays.append(pa.array(values, field.type))
        except UnicodeEncodeError:
            # A file's name that is no text, mostly.
            arrays.append(pa.array([_as_text(value) for value in values], field.type))
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _as_text(value: Any) -> Any:
    """`value`, its characters that cannot be encoded as escapes."""
    if isinstance(value, str):
        return value.encode("utf-8", "backslashreplace").decode("utf-8")
    if isinstance(value, list):
        return [_as_text(item) for item in value]
    if isinstance(value, dict):
        return {name: _as_text(item) for name, item in value.items()}
    return value


class _Days:
    """Turns times into dates; most times are of the same day as the last."""

    def __init__(self) -> None:
        self._number: i64 = 0
        self._date: date = _EPOCH

    def of(self, time: i64) -> date:
        """The date (UTC) of a time in ns since 1970."""
        number = time // _DAY
        if number != self._number:
            self._number = number
            self._date = _EPOCH + timedelta(days=int(number))
        return self._date


class _Followed:
    """What is put together from the frames of one connection."""

    def __init__(self, connection: Connection, names: LinkNames) -> None:
        # What follows a connection that the names of links do not follow; None if they do.
        self.followed: Conversation | None = protocol_of(connection.protocol).conversation()
        self.summary = ConnectionOverview(connection, self.followed or names.conversation(connection))
        self.log: DeliveryLog | None = None


class Recorder:
    """Makes the rows of one capture set. captures: its files' names, by position.

    several: what its connections share, None if all of them are analysed here.
    """

    def __init__(
        self, rows: Rows, capture_set: str, captures: list[str], several: Several | None = None
    ) -> None:
        self._rows = rows
        self._set = capture_set
        self._captures = captures
        self._days = _Days()
        self._names = LinkNames()
        self._form = FrameForm("", False, self._names)
        self._followed: dict[Connection, _Followed] = {}
        # The connection of the last frame: nearly always the next one's too.
        self._last: Connection | None = None
        self._current: _Followed
        self._notes: dict[Connection, list[Note]] = {}
        self._of_files: list[Note] = []
        self._with_frames = "frames" in rows.wanted
        self._with_summaries = not rows.wanted.isdisjoint(("connections", "links"))
        self._with_deliveries = "deliveries" in rows.wanted
        # To be given all frames, if diagnoses are wanted.
        self.watches: CaptureDiagnoses | None = None
        if "diagnoses" in rows.wanted:
            self.watches = CaptureDiagnoses(rows.terms.policy.limits, several)

    @property
    def needs_records(self) -> bool:
        """Whether any table is wanted that frames are needed for."""
        return self._with_frames or self._with_summaries or self._with_deliveries

    def take(self, table: ConnectionTable) -> None:
        """All that has come out since the last time."""
        for record in table.output.take_records():
            try:
                self._frame(record)
            except Exception as error:
                table.fail(record.connection, error, record.packet, record.time)
        self.take_findings(table.output.take_findings())
        for note in table.output.notes:
            if note.code == INTERNAL:
                self._mishap(note)
            if note.connection is None:
                self._of_files.append(note)
            else:
                self._notes.setdefault(note.connection, []).append(note)
        table.output.notes.clear()
        for analysis in table.kept.take_ended():
            try:
                self._connection(analysis)
            except Exception as error:
                self.fail(error, analysis.connection)

    def fail(self, error: Exception, connection: Connection | None) -> None:
        """An error of amqpscope itself came up in the rows of a connection, None: when connections were
        compared with each other. To be called where `error` is caught; one for want of memory is raised
        again.
        """
        if isinstance(error, MemoryError):
            raise error
        what = "making rows of this connection" if connection else "comparing connections with each other"
        self._mishap(mishap(error, 0, 0, connection, what))

    def _mishap(self, note: Note) -> None:
        which = "" if note.connection is None else note.connection.id
        packet = split(int(note.packet))[1]
        self._rows.counts["mishap", which, f"packet {packet}: {note.detail}" if packet else note.detail] += 1

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

    def _frame(self, record: FrameRecord) -> None:
        connection = record.connection
        if connection is not self._last:
            followed = self._followed.get(connection)
            if followed is None:
                followed = _Followed(connection, self._names)
                self._followed[connection] = followed
            self._last = connection
            self._current = followed
        log = self._current.log
        if self._with_deliveries and log is None:
            protocol = protocol_of_kind(record.frame.kind, record.frame.dialect)
            if protocol is not None:
                log = protocol.delivery_log(self._names, connection)
                self._current.log = log
        link = self._names.of(record)
        if self._with_summaries:
            if self._current.followed is not None:
                self._current.followed.take(record)
            add_frame(self._current.summary, record, link)
        if log is not None:
            for delivery in log.take(record, link):
                self._delivery(connection, delivery)
        if self._with_frames:
            self._frame_row(record, link)

    def _frame_row(self, record: FrameRecord, link: Link | None) -> None:
        connection = record.connection
        frame = record.frame
        position, packet = split(record.packet)
        time: i64 = record.time
        guarded = self._form.guards(record, link)
        fields = self._form.fields(record, guarded)
        message = None if record.message is None else self._form.message(record, link)
        problems = _NONE
        if frame.problems:
            problems = [
                {
                    "code": problem.code,
                    "offset": problem.offset,
                    "path": problem_path(problem, guarded),
                    "reason": problem.reason,
                }
                for problem in frame.problems
            ]
        self._rows.add(
            "frames",
            (
                self._set,
                self._captures[position],
                packet,
                time // 1000,
                time,
                connection.id,
                record.peer,
                frame.kind,
                frame.name,
                frame.channel if frame.channel >= 0 else None,
                frame.offset,
                frame.size,
                fields,
                problems,
                split(record.last_packet)[1] if record.last_packet != record.packet else None,
                frame.absent if frame.missing > 0 and frame.absent > 0 else None,
                self._form.payload(record),
                None if link is None else without_password(link.name),
                None if link is None else _without_password(link.address),
                message,
                self._days.of(time),
                connection.protocol or None,
            ),
            len(fields) + (0 if message is None else len(message)),
        )

    def _delivery(self, connection: Connection, delivery: DeliveryRow) -> None:
        position, packet = split(delivery.packet)
        settled = delivery.settled_by
        self._rows.add(
            "deliveries",
            (
                self._set,
                self._captures[position],
                packet,
                delivery.time // 1000,
                delivery.time,
                connection.id,
                delivery.sender,
                delivery.channel,
                _without_password(delivery.link_name),
                _without_password(delivery.address),
                _whole(delivery.id),
                None if delivery.tag is None else delivery.tag.hex(),
                delivery.transfers,
                delivery.payload,
                delivery.complete,
                delivery.aborted,
                delivery.outcome or None,
                delivery.condition or None,
                settled or None,
                split(delivery.settled_packet)[1] if settled else None,
                delivery.settled_time - delivery.time if settled else None,
                self._days.of(delivery.time),
                connection.protocol or None,
            ),
        )

    def _finding(self, finding: Finding) -> None:
        position, packet = split(int(finding.packet))
        capture = self._captures[position]
        if not self._rows.rulings.decide(finding, capture):
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
            "time_ns": time,
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
        followed = self._followed.pop(connection, None)
        if followed is None:
            followed = _Followed(connection, self._names)
        elif followed is self._current:
            self._last = None
        if followed.log is not None:
            for delivery in followed.log.finish():
                self._delivery(connection, delivery)
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
                start // 1000,
                start,
                end // 1000,
                end,
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
    return None if number is None or number > _LARGEST else number


def _without_password(text: str | None) -> str | None:
    return None if text is None else without_password(text)
