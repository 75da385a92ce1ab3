"""The flow plan's tasks: references to segments, shuffled by connection, and the analysis behind the shuffle.

    index    a large file is gone through once, and cut into ranges with the reader's state (`files.ranges`)
    refer    ranges of files -> blocks of references, and a row for each range with what became of it
    analyse  blocks in order of set, pair and packet -> rows of the tables, and summaries of connections
    correlate  the summaries of a capture set -> findings and diagnoses that only several connections give

Behind the shuffle a task has the blocks of many pairs, sorted: it holds one connection table, for the pair
it is at, and one block. No group is ever in memory as a whole.
"""

import json
import pickle
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any, Final, NamedTuple

import pyarrow as pa

from amqpscope.analysis.table import ConnectionTable
from amqpscope.correlation.correlate import correlate as join
from amqpscope.diagnoses.later import LaterSeveral, conclude
from amqpscope.limits import MAX_CORRELATED_LINKS
from amqpscope.model.note import Note
from amqpscope.pipeline.capture_set import CaptureSet
from amqpscope.pipeline.chain import table_for
from amqpscope.pipeline.files import FileResult, Range, RangeReader, file_row
from amqpscope.pipeline.inputs import Trouble
from amqpscope.pipeline.references import Payloads, Referrer, carries_payload, replay, replay_by_time
from amqpscope.pipeline.rows import Recorder, Rows
from amqpscope.pipeline.secrets import SecretsAddress, give, secrets_for
from amqpscope.pipeline.series import add_missing
from amqpscope.tracking.summary import ConnectionSummary, load_summary

__all__ = ["BLOCKS", "FilePiece", "analyse", "blocks_of", "correlate", "refer"]

BLOCKS = pa.schema(
    [("capture_set", pa.int32()), ("pair", pa.binary()), ("packet", pa.int64()), ("segments", pa.binary())]
)
"""What is shuffled: number of the capture set, pair, first packet (or its time, see `Referrer`), segments.
Rows without a pair are the fates of ranges: position of the file, place of the range in it, and the fate as
JSON."""

_LOST = b""
"""In place of a summary: packets were lost, and whole connections may be among them."""

_SUMMARY: Final = "summary"
_FACTS: Final = "facts"
"""What else is in place of one: the summary of a connection, or facts for diagnoses (`LaterSeveral`)."""

_BATCH_OCTETS = 4 * 1024 * 1024


class FilePiece(NamedTuple):
    """A range of a file. set_number, position, number: of the set, the file in it, the range."""

    set_number: int
    position: int
    number: int
    part: Range


def refer(
    piece: FilePiece, sets: list[CaptureSet], shuffle: str, secrets: SecretsAddress | None = None
) -> Iterator[pa.RecordBatch]:
    """The blocks of a piece, and its fate. shuffle: one of `references.SHUFFLES`. secrets: who takes those of
    the file.
    """
    one = sets[piece.set_number]
    file = one.files[piece.position]
    referrer = Referrer(carries_payload(file, shuffle), one.by_time, piece.part.latest)
    reader = RangeReader(file, piece.position, piece.part, referrer, referrer.fed_by)
    blocks: list[tuple[bytes, int, bytes]] = []
    octets = 0
    for _ in reader:
        for lines in referrer.take_secrets():
            give(secrets, piece.set_number, lines)
        for block in referrer.take(False):
            blocks.append(block)
            octets += len(block[2])
        if octets >= _BATCH_OCTETS:
            yield _batch(piece.set_number, blocks)
            blocks, octets = [], 0
    blocks += referrer.take(True)
    notes = [Note(code, packet, time, detail, None) for code, packet, time, detail in referrer.notes]
    fate = reader.fate(notes)
    blocks.append((b"", (piece.position << 32) | piece.number, json.dumps(fate).encode()))
    yield _batch(piece.set_number, blocks)


def _batch(set_number: int, blocks: list[tuple[bytes, int, bytes]]) -> pa.RecordBatch:
    pairs, packets, segments = zip(*blocks, strict=True)
    return pa.RecordBatch.from_arrays(
        [
            pa.array([set_number] * len(blocks), pa.int32()),
            pa.array(pairs, pa.binary()),
            pa.array(packets, pa.int64()),
            pa.array(segments, pa.binary()),
        ],
        schema=BLOCKS,
    )


def blocks_of(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int, bytes, int, bytes]]:
    """The rows of batches, one by one."""
    for batch in batches:
        sets, pairs, packets, segments = batch.columns
        for row in range(batch.num_rows):
            yield sets[row].as_py(), pairs[row].as_py(), packets[row].as_py(), segments[row].as_py()


def analyse(
    blocks: Iterable[tuple[int, bytes, int, bytes]],
    sets: list[CaptureSet],
    rows: Rows,
    summaries: list[tuple[int, bytes]],
) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Analyse blocks in order, into `rows`; gives the full batches. The rest is the caller's to take.

    summaries: where those of connections are put that others may be compared with, with their set's number.
    """
    for set_number, of_set in groupby(blocks, key=lambda block: block[0]):
        one = sets[set_number]
        several = LaterSeveral(rows.terms.policy.limits)
        recorder = Recorder(rows, one.name, [file.capture for file in one.files], several)
        payloads = Payloads(one)
        secrets = secrets_for(rows.terms.secrets, None, set_number)
        try:
            for pair, of_pair in groupby(of_set, key=lambda block: block[1]):
                if not pair:
                    if _files(one, of_pair, rows):
                        summaries.append((set_number, _LOST))
                    continue
                table = table_for(recorder, rows, one.name, secrets)
                table.correlation.wanted = False
                for _ in _replayed(one, pair, of_pair, payloads, table):
                    recorder.take(table)
                    yield from rows.batches()
                table.finish()
                recorder.take(table)
                summaries += [
                    (set_number, pickle.dumps((_SUMMARY, summary.dump())))
                    for summary in table.correlation.summaries
                ]
                facts = several.take()
                if facts:
                    summaries.append((set_number, pickle.dumps((_FACTS, facts))))
                yield from rows.batches()
        finally:
            payloads.close()


def _replayed(
    one: CaptureSet,
    pair: bytes,
    blocks: Iterable[tuple[int, bytes, int, bytes]],
    payloads: Payloads,
    table: ConnectionTable,
) -> Iterator[None]:
    """Feed the blocks of a pair to `table`; gives way after each."""
    if one.by_time:
        in_time = ((time, segments) for _, _, time, segments in blocks)
        yield from replay_by_time(pair, in_time, payloads, table)
        return
    for _, _, _, segments in blocks:
        replay(pair, segments, payloads, table)
        yield


def correlate(one: CaptureSet, summaries: Iterable[bytes], rows: Rows) -> None:
    """Judge and diagnose the connections of a capture set together, by the summaries that `analyse` gave."""
    recorder = Recorder(rows, one.name, [file.capture for file in one.files])
    loaded: list[ConnectionSummary] = []
    facts: list[tuple[Any, ...]] = []
    links = 0
    whole = True
    for dumped in summaries:
        if dumped == _LOST:
            whole = False
            continue
        # Made by our own workers, of plain values.
        kind, values = pickle.loads(dumped)  # noqa: S301
        if kind == _FACTS:
            facts += values
            continue
        summary = load_summary(values)
        if links < MAX_CORRELATED_LINKS:
            loaded.append(summary)
            links += summary.weight
    try:
        recorder.take_findings(join(loaded, whole))
        recorder.take_placed(conclude(facts, rows.terms.policy.limits))
    except Exception as error:
        recorder.fail(error, None)


def _files(one: CaptureSet, fates: Iterable[tuple[int, bytes, int, bytes]], rows: Rows) -> bool:
    """The rows of a set's files. Gives whether one of them says that its capture lost packets."""
    lost = False
    for position, of_file in groupby(fates, key=lambda block: block[2] >> 32):
        known = []
        for _, _, _, text in of_file:
            trouble, packets, segments, notes = json.loads(text)
            known.append(
                FileResult(
                    None if trouble is None else Trouble(*trouble),
                    packets,
                    segments,
                    [(code, packet, detail) for code, packet, detail in notes],
                )
            )
            lost = lost or any(code == "capture/dropped" for code, _, _ in notes)
        rows.add_file(file_row(one.name, one.files[position], position, known))
    add_missing(one.name, one.files, one.ordered, rows)
    return lost
