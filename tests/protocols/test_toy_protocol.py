"""A third protocol, made here and added to the list: commands read, judge and show it as the others.

Its frames are `TOYF`, their size in four octets, and text. A text must not be empty.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.commands import amqpscope
from support.connection_harness import ConnectionHarness
from support.conversation import Conversation

from amqpscope.capture.words import INTERPRETED
from amqpscope.model.finding import Finding
from amqpscope.model.records import CLIENT, SERVER, Connection, FrameRecord
from amqpscope.protocols import PROTOCOLS, Protocol, label, protocol_of
from amqpscope.report.json_renderer import JsonRenderer
from amqpscope.report.text_renderer import TextRenderer
from amqpscope.rules.case import Case
from amqpscope.rules.catalogue import catalogue
from amqpscope.rules.context import Contexts
from amqpscope.rules.declaration import DECLARED, SUBJECTS, Rules
from amqpscope.rules.judge import Judge
from amqpscope.tracking.inbox import Arrival, Recipient
from amqpscope.tracking.snapshot import ConnectionSnapshot, EndSnapshot
from dissectors.detect import MORE, UNKNOWN
from dissectors.interface import Frame
from dissectors.stream_decoder import CREDIBLE, NOT_CREDIBLE, StreamDecoder

pytestmark = pytest.mark.skipif(not INTERPRETED, reason="compiled classes have compiled subclasses only")

MAGIC = b"TOYF"
RULE = "toy/F-EMPTY"


def frame(text: str) -> bytes:
    return MAGIC + (8 + len(text)).to_bytes(4, "big") + text.encode()


class ToyDecoder(StreamDecoder):
    def __init__(self, midstream: bool) -> None:
        super().__init__(midstream, 0)

    def run(self, buf: bytes, start: int, end: int) -> int:
        at = start
        while end - at >= 8:
            size = self.frame_size(buf[at : at + 8])
            if buf[at : at + 4] != MAGIC:
                self.lose("F-MAGIC", "this is no frame")
                return at
            if size > end - at:
                break
            self.decode(buf, at, size, size)
            at += size
        if at < end:
            self.keep(buf, at, end)
        return -1

    def decode(self, buf: bytes, at: int, size: int, kept: int) -> None:
        found = Frame(self.offset, size, "toy", "say", -1)
        found.body = buf[at + 8 : at + kept]
        found.place(buf, at, at + 8, at + 8, at + kept)
        self.give(found, size)

    def frame_size(self, buf: bytes) -> int:
        return max(int.from_bytes(buf[4:8], "big"), 8)

    def candidate(self, window: bytes, start: int, end: int) -> int:
        return next((at for at in range(start, end) if MAGIC.startswith(window[at : min(at + 4, end)])), end)

    def credible(self, buf: bytes, at: int, end: int, last: bool) -> int:
        octets = buf[at : min(at + 4, end)]
        if octets == MAGIC:
            return CREDIBLE
        return NOT_CREDIBLE if last or not MAGIC.startswith(octets) else len(MAGIC)

    def give_wrong(self, buf: bytes, at: int, size: int) -> bool:
        return False

    def dump_protocol(self) -> tuple[object, ...]:
        return ()

    @staticmethod
    def load(state: tuple[Any, ...]) -> ToyDecoder:
        decoder = ToyDecoder(False)
        decoder.restore(state)
        return decoder


class ToyEnd(Recipient):
    def receive(self, arrival: Arrival) -> None: ...

    def lost(self) -> None: ...

    def prove(self, record: FrameRecord) -> None: ...


class ToyJudge(Judge):
    def __init__(self, connection: Connection, findings: list[Finding], contexts: Contexts | None) -> None:
        self.case = Case(connection)
        super().__init__(connection, findings, self.case.findings, contexts)
        self.ends = (ToyEnd(), ToyEnd())

    def take(self, record: FrameRecord) -> None:
        self.case.record = record
        self.case.found = 0
        if record.frame.body == b"":
            self.case.report(RULE, "says nothing")
        self.saw(record, self.case.found)

    def doubt(self, doubtful: bool) -> None:
        self.case.doubtful = doubtful

    def end(self, *about: Any) -> None: ...

    def overdue(self, now: int) -> list[Any]:
        return []

    def endpoint(self, direction: int) -> Recipient:
        return self.ends[direction]

    def snapshot(self) -> ConnectionSnapshot:
        return ConnectionSnapshot(EndSnapshot(CLIENT, "OPEN"), EndSnapshot(SERVER, "OPEN"))

    def answers(self, finding: Finding, error: Any) -> bool:
        return False

    def dump(self) -> tuple[object, ...]:
        return ()


class ToyJson(JsonRenderer):
    def names(self) -> tuple[str, ...]:
        return ("say",)

    def guards(self, *about: Any) -> bool:
        return False

    def fields(self, found: Frame, guarded: bool) -> str:
        assert isinstance(found.body, bytes)
        return json.dumps({"text": found.body.decode()})


class ToyText(TextRenderer):
    def line(self, found: Frame, *about: Any) -> list[tuple[str, str]]:
        assert isinstance(found.body, bytes)
        return [("", f"says {found.body.decode()!r}")]


class Toy(Protocol):
    name = "toy"
    label = "TOY 1"
    version = "1"
    kinds = ("toy",)

    def detect(self, buf: bytes) -> str:
        return self.name if buf.startswith(MAGIC) else MORE if MAGIC.startswith(buf) else UNKNOWN

    def decoder(self, midstream: bool) -> StreamDecoder:
        return ToyDecoder(midstream)

    def load_decoder(self, state: tuple[object, ...]) -> StreamDecoder:
        return ToyDecoder.load(state)

    def judge(
        self, connection: Connection, findings: list[Finding], contexts: Contexts | None, budget: Any
    ) -> Judge:
        return ToyJudge(connection, findings, contexts)

    def load_judge(self, state: tuple[Any, ...], connection: Connection, findings: list[Finding]) -> Judge:
        return ToyJudge(connection, findings, None)

    def json_renderer(self) -> JsonRenderer:
        return ToyJson()

    def text_renderer(self) -> TextRenderer:
        return ToyText()


@pytest.fixture(autouse=True)
def toy(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The protocol is in the list, and its rule declared, while a test runs."""
    monkeypatch.setitem(PROTOCOLS, "toy", Toy())
    Rules("toy/frames").rule("F-EMPTY", "MUST", "made up", layer="framing")
    catalogue.cache_clear()
    yield
    del DECLARED[RULE], SUBJECTS["toy/frames"]
    catalogue.cache_clear()


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    d = Conversation()
    d.client.say(frame("hello"))
    d.server.say(frame("good day"))
    d.client.say(frame(""))
    d.client.fin()
    d.server.fin()
    path = tmp_path / "toy.pcap"
    path.write_bytes(d.pcap())
    return path


def test_read_shows_its_frames(capture: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = amqpscope(capsys, "read", capture)
    assert text.status == 0
    assert "says 'hello'" in text.out and "says 'good day'" in text.out
    data = [json.loads(line) for line in amqpscope(capsys, "read", "--format", "ndjson", capture).lines]
    reported = [(one["protocol"], one["kind"], one["name"], one["fields"]) for one in data]
    assert reported[:2] == [
        ("toy", "toy", "say", {"text": "hello"}),
        ("toy", "toy", "say", {"text": "good day"}),
    ]


def test_check_judges_it(capture: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = amqpscope(capsys, "check", "--no-config", capture)
    assert result.status == 1
    assert f"error {RULE} by the client in packet 6: says nothing" in result.out
    assert "3 frames on 1 connection" in result.out


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        (["summary"], "TOY 1"),
        (["summary", "--format", "json"], '"protocol": "toy"'),
        (["why", "--end"], "says 'good day'"),
        (["read", "--count"], "say"),
    ],
)
def test_other_commands_take_it(
    command: list[str], shown: str, capture: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    result = amqpscope(capsys, *command, capture)
    assert (result.status, result.err) == (0, "")
    assert shown in result.out


def test_its_rule_is_in_the_catalogue(capsys: pytest.CaptureFixture[str]) -> None:
    result = amqpscope(capsys, "rules", "list", "--protocol", "toy")
    assert result.status == 0
    assert f"+ {RULE} error" in result.lines[0]


def test_why_of_a_packet(capture: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = amqpscope(capsys, "why", capture, 6)
    assert result.status in (0, 1)
    assert f"error {RULE}" in result.out


def test_a_loss_and_another_process() -> None:
    """Joined in the middle it is found by its frames, as the other protocols are."""
    for reload in (False, True):
        harness = ConnectionHarness(syn=False, reload=reload)
        harness.send(0, b"xxxx" + frame("one") + frame("two"), each=5)
        harness.skip(0, 7)
        harness.send(0, frame("three"))
        harness.finish()
        assert harness.connection.protocol == "toy"
        assert [one.frame.body for one in harness.out if one.frame.kind == "toy"] == [
            b"one",
            b"two",
            b"three",
        ]


def test_a_name_that_nothing_has_raises() -> None:
    with pytest.raises(LookupError, match="amqp092"):
        protocol_of("amqp092")
    assert protocol_of("toy").label == label("toy") == "TOY 1"
    assert protocol_of("http") is protocol_of("amqp10")
