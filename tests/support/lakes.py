"""What a lake holds, and what `read` and `check` say of the same captures."""

from __future__ import annotations

import datetime
import json
import struct
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from support.sampling import share

from amqpscope.input.capture import Capture, CaptureOptions
from amqpscope.pipeline import analyse
from amqpscope.pipeline.lake import Lake
from amqpscope.pipeline.schemas import TABLES
from amqpscope.report.findings import decided_object
from amqpscope.report.json_form import FrameForm
from amqpscope.report.links import LinkNames

CAPTURES = Path(__file__).resolve().parents[2] / "captures"

BUNDLED = sorted(CAPTURES.glob("*.pcap*")) + sorted((CAPTURES / "rules").rglob("*.pcap"))

SOME = list(share(BUNDLED, 5, "some"))
"""For what takes long with each."""

Rows = dict[str, list[dict[str, Any]]]


def ordered(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows in an order that depends on nothing but them."""
    return sorted(rows, key=lambda row: json.dumps(row, sort_keys=True, default=str))


def _parts(lake: Path) -> Iterator[tuple[str, str, list[dict[str, Any]]]]:
    """Table, path and rows of every file of the tables that the last run left, read without Spark."""
    at = Lake(str(lake))
    for name in at.written().versions:
        for part in at.parts(name):
            found = pq.ParquetFile(lake / part.path).read().to_pylist()
            assert len(found) == part.rows
            yield name, part.path, found


def contents(lake: Path) -> Rows:
    """All rows of all tables."""
    rows: Rows = {name: [] for name in TABLES}
    for name, _, found in _parts(lake):
        rows[name] += found
    tables = Lake(str(lake)).run_rows()[-1]["tables"]
    assert all(len(rows[table["name"]]) == table["rows"] for table in tables)
    return {name: ordered(kept) for name, kept in rows.items()}


def in_spark(frame: Any) -> list[dict[str, Any]]:
    """The rows of a data frame, times in UTC as pyarrow gives them."""
    zone = datetime.UTC

    def row(one: Any) -> dict[str, Any]:
        return {
            name: value.astimezone(zone) if isinstance(value, datetime.datetime) else value
            for name, value in one.asDict(recursive=True).items()
        }

    return ordered(row(one) for one in frame.collect())


def written(spark: Any, lake: Path, sources: Iterable[object], **options: Any) -> Rows:
    """All rows of a run."""
    analyse(spark, [str(source) for source in sources], **options).write(str(lake))
    return contents(lake)


def checked(path: Path) -> list[dict[str, Any]]:
    """The findings of `amqpscope check`, as the objects that its JSON has.

    Without the addresses of their sources: the lake does not have these, and `spec` names each source.
    """
    with Capture(str(path), CaptureOptions(keep=False, records=False, judge=True)) as capture:
        found = []
        for _ in capture.blocks():
            found += capture.take_findings()
        objects = [json.loads(json.dumps(decided_object(finding, str(path)))) for finding in found]
    for one in objects:
        del one["references"]
    return objects


def read(path: Path) -> list[dict[str, Any]]:
    """The frames of `amqpscope read --format ndjson`."""
    form = FrameForm(str(path), False, LinkNames())
    with Capture(str(path), CaptureOptions(keep=False)) as capture:
        lines = [line for records in capture.blocks() for line in form.lines(records)]
    return [json.loads(line) for line in lines]


def nanoseconds(row: dict[str, Any]) -> str:
    """A row's time as JSON has it."""
    time = row["time"].astimezone(datetime.UTC)  # what Spark gives is of the zone here
    return f"{time:%Y-%m-%dT%H:%M:%S.%f}{row['time_rest_ns']:03}Z"


def as_finding(row: dict[str, Any]) -> dict[str, Any]:
    """A row of `findings` by the contract of `check`."""
    reported = {
        name: value for name, value in row.items() if name not in ("capture_set", "time_rest_ns", "date")
    }
    return reported | {"time": nanoseconds(row), "evidence": json.loads(row["evidence"])}


COLUMNS = TABLES["frames"].columns
FIELDS = [column.name for column in COLUMNS[[column.name for column in COLUMNS].index("message") + 1 : -2]]
"""The columns that have fields of frequent frames."""


def fields_in_columns(row: dict[str, Any]) -> dict[str, Any]:
    """The fields of a frame, by the contract of `read`, as far as a row of `frames` has them in columns."""
    fields = {name.replace("_", "-"): row[name] for name in FIELDS if row[name] is not None}
    if row["kind"] != "amqp" and "delivery-id" in fields:
        fields["delivery-tag"] = fields.pop("delivery-id")
    if "state" in fields:
        fields["state"] = {"type": fields["state"]}
    if "properties" in fields:
        fields |= {"class-id": 60, "weight": 0, "properties": json.loads(fields["properties"])}
    if "mandatory" in fields:
        fields["reserved-1"] = 0
    return fields


def as_frame(row: dict[str, Any]) -> dict[str, Any]:
    """A row of `frames` by the contract of `read`."""
    own = ("capture_set", "time_rest_ns", "date", "offset", *FIELDS)
    reported = {name: value for name, value in row.items() if name not in own}
    fields = fields_in_columns(row) if row["fields"] is None else json.loads(row["fields"])
    reported |= {"time": nanoseconds(row), "fields": fields}
    if reported["message"] is not None:
        reported["message"] = json.loads(reported["message"])
    for name in ("last_packet", "missing", "payload", "link", "address", "message"):
        if reported[name] is None:
            del reported[name]
    return reported


def records(content: bytes) -> tuple[bytes, list[bytes]]:
    """The header and the records of a pcap file in little-endian order."""
    assert content[:4] in (b"\xd4\xc3\xb2\xa1", b"\x4d\x3c\xb2\xa1")
    found = []
    at = 24
    while at < len(content):
        size = 16 + struct.unpack_from("<I", content, at + 8)[0]
        found.append(content[at : at + size])
        at += size
    return content[:24], found


class Reported:
    """What `check` and `read` say of captures, each alone."""

    def __init__(self, captures: Sequence[Path]) -> None:
        self.captures = captures
        self._findings = [finding for path in captures for finding in checked(path)]
        self._frames = [frame for path in captures for frame in read(path)]
        self.findings = ordered(self._findings)
        self.frames = ordered(self._frames)

    def compare(self, lake: Path, with_json: bool = False) -> None:
        """A lake with these captures, each a set of its own, has the same rows; findings of a connection, and
        frames of a peer of a connection, in the same order, as far as they are in the same file. (What
        several connections tell is in files of its own in the flow plan.) with_json: it has messages.
        """
        rows = contents(lake)
        frames = self._frames if with_json else [_without_message(frame) for frame in self._frames]
        assert ordered(as_finding(row) for row in rows["findings"]) == self.findings
        found = [as_frame(row) for row in rows["frames"]]
        assert ordered(found if with_json else map(_without_message, found)) == ordered(frames)
        all_places = {"findings": _places(self._findings), "frames": _places(frames)}
        for name, path, part in _parts(lake):
            if name not in all_places:
                continue
            last: dict[tuple[str, str, str], int] = {}
            for row in part:
                key = (row["capture"], row["connection"], row["peer"] if name == "frames" else "")
                shown = as_finding(row) if name == "findings" else as_frame(row)
                if name == "frames" and not with_json:
                    shown = _without_message(shown)
                later = [place for place in all_places[name][_key(shown)] if place > last.get(key, -1)]
                assert later, f"{path}: {row} is not at its place"
                last[key] = later[0]
        assert {row["capture"] for row in rows["files"]} == {str(path) for path in self.captures}
        assert {row["status"] for row in rows["files"]} <= {"ok", "partial"}
        count = sum(row["client_frames"] + row["server_frames"] for row in rows["connections"])
        assert count == len(self.frames)


def _without_message(frame: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in frame.items() if name != "message"}


def _places(rows: list[dict[str, Any]]) -> dict[str, list[int]]:
    """Where equal rows stand."""
    places: dict[str, list[int]] = {}
    for place, row in enumerate(rows):
        places.setdefault(_key(row), []).append(place)
    return places


def _key(row: dict[str, Any]) -> str:
    return json.dumps(row, sort_keys=True)


def harmed(content: bytes, every: int, strange: bytes) -> bytes:
    """A pcap file in little-endian order with a fault at every so many octets of what comes of it, in turn:
    a record is missing, is there twice, comes after the next one, or has octets before it that are none.

    The packets of `strange`, another such file, are strewn among its own.
    """
    header, packets = records(content)
    others = records(strange)[1]
    assert header[20:24] == strange[20:24], "link types differ"
    apart = len(packets) // (len(others) + 1)
    made = bytearray(header)
    faults = 0
    at = 0
    while at < len(packets):
        if at % apart == 0 and others:
            made += others.pop(0)
        packet = packets[at]
        at += 1
        if len(made) + len(packet) <= (faults + 1) * every:
            made += packet
            continue
        fault = faults % 4
        faults += 1
        if fault == 1:
            made += packet + packet
        elif fault == 2 and at < len(packets):
            made += packets[at] + packet
            at += 1
        elif fault == 3:
            made += b"\xff" * 700 + packet
    return bytes(made)


def rotated(path: Path, into: Path, files: int) -> list[Path]:
    """A pcap file cut into several; their names are in another order than their times."""
    header, packets = records(path.read_bytes())
    each = -(-len(packets) // files)
    into.mkdir(parents=True, exist_ok=True)
    made = []
    for number in range(files):
        made.append(into / f"{chr(ord('z') - number)}.pcap")
        made[-1].write_bytes(header + b"".join(packets[number * each : (number + 1) * each]))
    return made
