"""Captures as they are found in the world: every capture there is, damaged in every way there is.

No command fails on one; the damage is reported in a note; every packet that is still there is read; and no
peer is certainly at fault that was not before. A rotated set is the file it was.

With AMQPSCOPE_CAPTURES=FOLDER captures of one's own are tried, too, and each in every way.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import re
from collections import Counter
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pytest
from support.capture_files import Recorder, Segment
from support.commands import amqpscope
from support.damage import DAMAGES, FORMS, Damaged, Packet, forms_for, packets_in, written
from support.sampling import thorough

from amqpscope.capture.source import CaptureSource
from amqpscope.errors import CaptureError

CAPTURES = Path(__file__).parents[2] / "captures"

OWN = [
    path
    for folder in os.environ.get("AMQPSCOPE_CAPTURES", "").split(os.pathsep)
    if folder
    for path in sorted(Path(folder).resolve().rglob("*.pcap*"))
]
"""Captures of one's own that are to be tried, too."""

BUNDLED = sorted(CAPTURES.glob("*.pcap*")) + sorted((CAPTURES / "rules").rglob("violating.pcap"))

EACH = 20 if thorough() else 120
"""Of the bundled captures every so many is damaged in one way, others in others."""

LARGEST = 100_000
"""Octets of a capture beyond which only its start is tried."""


def name(path: Path) -> str:
    return "-".join(path.parts[-2:])


def tried(damage: str) -> list[Path]:
    """The captures that are damaged in this way."""
    turn = list(DAMAGES).index(damage)
    return [path for number, path in enumerate(BUNDLED) if number % EACH == turn % EACH] + OWN


def packets_of(path: Path) -> list[Packet]:
    """Some packets have the same octets: each is another object, so that they are distinguished."""
    return packets_in(path.read_bytes()[:LARGEST])


class Reported:
    """What `check` says of a capture, and that the other commands say something, too."""

    def __init__(self, capsys: pytest.CaptureFixture[str], *paths: object, merge: bool = False) -> None:
        options = ["--merge"] if merge else []
        checked = amqpscope(capsys, "check", "--format", "json", *options, *paths)
        read = amqpscope(capsys, "read", "--format", "ndjson", *options, *paths)
        summary = amqpscope(capsys, "summary", *options, *paths)
        results = (checked, read, summary)
        self.status = read.status
        for result in results:
            assert "Traceback" not in result.out + result.err
            assert result.status in (0, 1, 2, 3)
            assert (result.status == 2) == (self.status == 2)
            if result.status == 2:
                assert re.fullmatch(r"amqpscope: .+\n", result.err)
        document: Any = json.loads(checked.out)
        (self.capture,) = document["captures"]
        self.notes = {note["code"] for note in self.capture["notes"]}
        # A connection between ports of another one, of which the capture has no SYN.
        self.reused = (
            re.search(r"^connection \d+ #[1-9]\d*  .*joined in the middle", summary.out, re.M) is not None
        )
        self.certain = Counter(
            (finding["rule"], finding["peer"], re.sub(r"#\d+$", "", finding["connection"] or ""))
            for finding in document["findings"]
            if finding["severity"] == "error" and finding["certainty"] == "certain"
        )
        # All but the file's name.
        self.findings = [
            {name: value for name, value in finding.items() if name not in ("capture", "packets")}
            | {"packets": [one["packet"] for one in finding["packets"]]}
            for finding in document["findings"]
        ]
        self.frames: dict[tuple[str, str], list[tuple[str, int]]] = {}
        for line in read.lines:
            frame = json.loads(line)
            of_peer = self.frames.setdefault((frame["connection"], frame["peer"]), [])
            of_peer.append((frame["name"], frame["size"]))
        # In text, a note is among what is read, or beside it.
        self.text = read.err + summary.out


def segments(octets: bytes) -> list[Segment]:
    """What the segments are, without the packets and times they have; none if it cannot be read at all."""
    recorder = Recorder()
    source = CaptureSource(io.BytesIO(octets), "file")
    try:
        reader = source.start(recorder)
    except CaptureError:
        return []
    while part := source.read(1 << 16):
        reader.feed(part)
    reader.finish()
    return [segment._replace(packet=0, time=0) for segment in recorder.segments]


def expected(packets: list[Packet]) -> list[Segment]:
    """The segments that are in these packets, in a file with nothing wrong with it."""
    if not packets:
        return []
    return segments(as_file(packets, forms_for(packets)[0]))


def as_file(packets: list[Packet], form: str) -> bytes:
    return b"".join(part.octets for part in written(packets, form))


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_capture(damage: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tried_at_all = 0
    failed = []
    for path in tried(damage):
        packets = packets_of(path)
        if not packets:
            continue
        forms = forms_for(packets)
        (tmp_path / "whole.pcap").write_bytes(as_file(packets, forms[0]))
        whole = Reported(capsys, tmp_path / "whole.pcap")
        for form in forms:
            chance = Random(f"{name(path)} {damage} {form}")
            if path not in OWN and chance.random() < 0.5:
                continue
            damaged = DAMAGES[damage](written(packets, form), chance, form)
            (tmp_path / "damaged").write_bytes(damaged.octets)
            try:
                _compare(damaged, whole, Reported(capsys, tmp_path / "damaged"))
            except AssertionError as error:
                failed.append(f"{name(path)}, {form}: {error}")
            tried_at_all += 1
    assert not failed, f"{len(failed)} of {tried_at_all}\n" + "\n".join(failed)
    assert tried_at_all > (20 if thorough() else 5)


def _compare(damaged: Damaged, whole: Reported, found: Reported) -> None:
    assert segments(damaged.octets) == expected(damaged.packets)
    if found.status == 2:  # so little of it is there that it might as well be something else
        assert not damaged.packets and damaged.notes
        return
    if damaged.notes:
        assert found.notes & set(damaged.notes)
        assert any(note in found.text for note in damaged.notes)
    else:
        assert found.capture["status"] == "ok"
    assert not found.certain - whole.certain
    if damaged.whole and not whole.reused:
        # Which of two connections a late packet belongs to, only a SYN tells.
        assert found.frames == whole.frames


@pytest.mark.parametrize("form", FORMS)
def test_a_rotated_set(form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Whatever it is split into; what is left of one whose first file is gone makes nobody guilty."""
    turn = list(FORMS).index(form)
    tried_at_all = 0
    scrambled = 0
    for path in [path for number, path in enumerate(BUNDLED) if number % EACH == turn] + OWN:
        packets = packets_of(path)
        if len(packets) < 3 or form not in forms_for(packets):
            continue
        chance = Random(f"{name(path)} {form}")
        cuts = sorted(chance.sample(range(1, len(packets)), chance.randrange(1, min(len(packets), 7))))
        pieces = [packets[begin:end] for begin, end in pairwise([0, *cuts, len(packets)])]
        starts = [piece[0].time for piece in pieces]
        if starts != sorted(starts):
            # The clock was set back: neither the times nor the names tell the order of the files.
            continue
        folder = tmp_path / path.parent.name / path.name
        folder.mkdir(parents=True)
        # By time, whatever the names are, where times tell the order.
        times = [packet.time for packet in packets]
        by_time = times == sorted(times) and all(times[cut] > times[cut - 1] for cut in cuts)
        scrambled += by_time
        names = [str(number) for number in range(len(pieces))][:: -1 if by_time else 1]
        for number, piece in enumerate(pieces):
            octets = as_file(piece, form)
            (folder / names[number]).write_bytes(gzip.compress(octets) if number % 3 == 2 else octets)
        (tmp_path / "whole.pcap").write_bytes(as_file(packets, form))
        whole = Reported(capsys, tmp_path / "whole.pcap")
        reported = Reported(capsys, folder, merge=True)
        assert reported.findings == whole.findings, path
        assert reported.frames == whole.frames, path
        assert (reported.notes, reported.status) == (whole.notes, whole.status), path
        (folder / names[0]).unlink()
        rest = Reported(capsys, folder, merge=True)
        assert not rest.certain - whole.certain, path
        tried_at_all += 1
    assert tried_at_all >= scrambled > (8 if thorough() else 1)
