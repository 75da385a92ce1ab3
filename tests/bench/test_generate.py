"""The bench's captures are legal and whole: later they must give no finding, so no peer may break a rule."""

from __future__ import annotations

import importlib.util
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest
from support.independent import Walk, walk_capture
from support.tshark import tshark_frames, tshark_version

import amqpscope
from dissectors.amqp091.methods import BasicAck, BasicDeliver, BasicPublish

# By its path: the script beside this test is no module of a package.
_spec = importlib.util.spec_from_file_location("bench_generate", Path(__file__).with_name("generate.py"))
assert _spec
assert _spec.loader
bench: Any = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(bench)

WIDTHS = {0x40: 0, 0x41: 0, 0x42: 0, 0x43: 0, 0x44: 0, 0x45: 0, 0x50: 1, 0x52: 1, 0x53: 1, 0x60: 2, 0x70: 4}


def value(body: bytes, at: int) -> tuple[Any, int]:
    """One value of the few encodings that the generator uses, and where the next begins."""
    code = body[at]
    at += 1
    if code == 0x00:
        _, at = value(body, at)
        return value(body, at)
    if code in (0xA0, 0xA1, 0xA3):
        end = at + 1 + body[at]
        return body[at + 1 : end], end
    if code == 0xC0:
        end = at + 1 + body[at]
        return fields(body, at + 1, end), end
    constants: dict[int, Any] = {0x40: None, 0x41: True, 0x42: False, 0x43: 0, 0x44: 0, 0x45: []}
    end = at + WIDTHS[code]
    return constants[code] if code in constants else int.from_bytes(body[at:end], "big"), end


def fields(body: bytes, at: int, end: int) -> list[Any]:
    count, items, at = body[at], [], at + 1
    for _ in range(count):
        item, at = value(body, at)
        items.append(item)
    assert at == end
    return items


def performative(body: bytes) -> tuple[list[Any], bytes]:
    items, end = value(body, 0)
    return items + [None] * (14 - len(items)), body[end:]


class Session:
    """One end's half of the session: what it sent, and what it was granted."""

    def __init__(self) -> None:
        self.channel = -1
        self.outgoing = 0  # next-outgoing-id
        self.deliveries = 0
        self.window = 0  # the first transfer beyond the other's incoming-window
        self.credit = 0  # the first delivery beyond the link's credit
        self.out = -1  # handle of the sending link
        self.into = -1
        self.presettled = False
        self.open_delivery = False
        self.unsettled: set[int] = set()
        self.stage = "none"
        self.attached = 0


def check(frames: list[tuple[int, int, str, int, bytes]]) -> Counter[str]:
    """Replays (packet, end, name, channel, body) of one connection and asserts that each was allowed."""
    ends = (Session(), Session())
    seen: Counter[str] = Counter()
    for _, who, name, channel, body in frames:
        me, other = ends[who], ends[1 - who]
        seen[name] += 1
        assert me.stage != "closed"
        assert len(body) + 8 <= bench.MAX_FRAME_SIZE
        if name.startswith(("header", "sasl")):
            continue
        given, payload = performative(body)
        if name == "open":
            assert me.stage == "none"
            me.stage = "open"
        elif name == "begin":
            assert me.stage == "open"
            assert given[0] == (other.channel if other.channel >= 0 else None)
            me.channel, me.stage, other.window = channel, "begun", given[2]
            assert given[1] == 0
        elif name == "close":
            assert me.stage == "ended"
            me.stage = "closed"
        else:
            assert me.stage == "begun"
            assert channel == me.channel
        if name == "attach":
            me.attached += 1
            if given[2]:
                me.into = given[1]
            else:
                me.out, me.presettled = given[1], given[3] == 1
                assert given[9] == 0
        elif name == "flow":
            assert given[0] == other.outgoing
            assert given[2] == me.outgoing
            assert given[3] > 2**30
            assert given[4] == me.into
            assert given[5] == other.deliveries
            other.window = given[0] + given[1]
            other.credit = given[5] + given[6]
        elif name == "transfer":
            assert given[0] == me.out
            assert me.attached == other.attached == 2
            assert me.outgoing < me.window
            me.outgoing += 1
            if not me.open_delivery:
                assert me.deliveries < me.credit
                assert given[1] == me.deliveries
                assert given[3] == 0
                assert given[4] == me.presettled
                assert 0 < len(given[2]) <= 32
            me.open_delivery = given[5] is True
            assert payload
            if not me.open_delivery:
                if not me.presettled:
                    me.unsettled.add(me.deliveries)
                me.deliveries += 1
        elif name == "disposition":
            role, first, last, settled, state = given[:5]
            assert role is True
            assert settled is True
            assert state == []
            assert set(range(first, last + 1)) <= other.unsettled
            other.unsettled -= set(range(first, last + 1))
        elif name == "detach":
            assert not me.unsettled
            assert not other.unsettled
            assert not me.open_delivery
            assert given[0] in (me.out, me.into)
            assert given[1] is True
            me.attached -= 1
        elif name == "end":
            assert me.attached == 0
            me.stage = "ended"
    assert [end.stage for end in ends] == ["closed", "closed"]
    return seen


def connections(walks: list[Walk]) -> list[list[tuple[int, int, str, int, bytes]]]:
    """The frames of both directions of each connection, in the order of the file."""
    pairs: dict[frozenset[str], list[tuple[int, int, str, int, bytes]]] = defaultdict(list)
    for walk in walks:
        assert walk.stopped == ""
        who = 0 if walk.destination.endswith(":5672") else 1
        pairs[frozenset((walk.source, walk.destination))] += [
            (packet, who, name, channel, body)
            for (packet, name, channel), body in zip(walk.frames, walk.bodies, strict=True)
        ]
    # Stable: what one packet, or one direction, brings stays in its order.
    return [sorted(frames, key=lambda frame: frame[0]) for frames in pairs.values()]


@pytest.mark.parametrize("kind", [kind for kind in bench.KINDS if kind not in ("rabbitmq", "tls")])
def test_every_frame_is_legal(kind: str, tmp_path: Path) -> None:
    size = {"large": 4_000_000, "loopback": 1_500_000}.get(kind, 800_000)
    path = tmp_path / "bench.pcap"
    bench.generate(kind, size, path)
    assert 0.7 * size < path.stat().st_size < 1.4 * size
    seen: Counter[str] = Counter()
    for frames in connections(walk_capture(path)):
        seen += check(frames)
    for name in (
        "header 0",
        "header 3",
        "sasl-init",
        "open",
        "begin",
        "attach",
        "flow",
        "transfer",
        "disposition",
    ):
        assert seen[name] >= 2, name


def test_what_is_sealed_is_the_same_conversation(tmp_path: Path) -> None:
    """Decrypted, a capture in TLS has the frames that a capture of small messages has, and no fault."""
    pytest.importorskip("cryptography")
    path = tmp_path / "bench.pcap"
    bench.generate("tls", 800_000, path)
    keys = str(path.with_suffix(".keys"))
    names = Counter(record.frame.name for record in amqpscope.read(path, tls_keylog=[keys]))
    assert names["transfer"] > 500 and names["skipped"] == 0


def test_the_same_seed_gives_the_same_file(tmp_path: Path) -> None:
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        bench.generate("small", 300_000, tmp_path / name, seed=seed)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes() != (tmp_path / "c").read_bytes()


@pytest.mark.tshark
@pytest.mark.skipif(tshark_version() is None, reason="tshark is not installed")
def test_tshark_decodes_all_of_it(tmp_path: Path) -> None:
    path = tmp_path / "bench.pcap"
    bench.generate("small", 200_000, path)
    frames = tshark_frames(path)
    assert [frame for frame in frames if frame.faults] == []
    assert Counter(f.name for f in frames) == sum((w.counts for w in walk_capture(path)), Counter[str]())


@pytest.mark.parametrize(
    ("text", "expected"), [("300MB", 300_000_000), ("1.5GB", 1_500_000_000), ("87000", 87000)]
)
def test_sizes(text: str, expected: int) -> None:
    assert bench.octets(text) == expected


def test_every_frame_of_0_9_1_is_legal(tmp_path: Path) -> None:
    """Each deliver within the prefetch window, tags and confirms in order, each message whole."""
    path = tmp_path / "rabbitmq.pcap"
    bench.generate("rabbitmq", 1_500_000, path)
    delivered: Counter[str] = Counter()
    acknowledged: Counter[str] = Counter()
    published: Counter[str] = Counter()
    confirmed: Counter[str] = Counter()
    bodies = 0
    for record in amqpscope.read(path):
        frame, connection = record.frame, record.connection.id
        assert not frame.problems
        method = frame.body
        if isinstance(method, BasicDeliver):
            delivered[connection] += 1
            assert method.delivery_tag == delivered[connection]
            assert delivered[connection] - acknowledged[connection] <= bench.PREFETCH
        elif isinstance(method, BasicPublish):
            published[connection] += 1
        elif isinstance(method, BasicAck):
            counted, most = (acknowledged, delivered) if record.peer == "client" else (confirmed, published)
            assert counted[connection] < method.delivery_tag <= most[connection]
            counted[connection] = method.delivery_tag
        bodies += frame.kind == "body"
    assert bodies == delivered.total() + published.total() > 2000
    assert delivered == acknowledged and published == confirmed
    assert len(published) == 16  # every third connection only consumes
    assert list(amqpscope.check(path)) == []
