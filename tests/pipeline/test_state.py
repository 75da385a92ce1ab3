"""The state of a set that is followed: who goes on with it writes the rows of one run."""

from __future__ import annotations

import ast
import datetime
import io
import os
import pickle
import sys
from collections import Counter, OrderedDict, deque
from pathlib import Path
from random import Random
from typing import Any

import pytest
from layers.test_tls import recorded, talk
from layers.test_tls_secrets import capture_of, secrets_block
from pipeline.test_following import Gathered, by_table, whole
from pipeline.test_secrets_not_stored import said
from support.damage import packets_in, written
from support.lakes import BUNDLED, CAPTURES
from support.sampling import in_ci, share
from support.tls import Ends

import amqpscope
import dissectors
from amqpscope.pipeline import follower, object_classes, object_reader
from amqpscope.pipeline import rows as rows_of_tables
from amqpscope.pipeline.capture_set import capture_sets
from amqpscope.pipeline.failure import PipelineError
from amqpscope.pipeline.followed import FollowedFiles
from amqpscope.pipeline.follower import FollowerTerms, Step
from amqpscope.pipeline.object_classes import NotKept, NotLoaded
from amqpscope.pipeline.object_reader import loaded
from amqpscope.pipeline.object_writer import dumped
from amqpscope.pipeline.schemas import TABLES
from amqpscope.tracking.amqp10.credit import NO_CREDIT
from dissectors.values import Pairs

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks")

TEN, NINE = CAPTURES / "proton-windows.pcap", CAPTURES / "rabbitmq-large.pcap"
SOME = [
    CAPTURES / f"{name}.pcap"
    for name in (
        "amqplib-settle",
        "amqplib-update-secret",
        "java-errands",
        "pika-large",
        "pika-publish-consume",
        "pyamqp-transactions",
        "proton-durable",
        "proton-scram-sha-1",
        "proton-transactions",
        "rabbitmq-credit",
        "rhea-split-message",
        "servicebus-batch",
    )
]
NARROW = 15 if in_ci() else 5
"""Places of a capture at which its state is taken, where it has more packets."""

LIMIT = 1 << 24


@pytest.fixture(autouse=True)
def gathered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follower, "PartWriter", Gathered)


class Handed:
    """Follows the set of a directory; each step is that of another process, which goes on with the state."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.state = b""
        self.final: list[Any] = []
        self.refused: list[str] = []
        self.anew = 0
        self._followed: Any = None

    def step(self) -> None:
        (one,) = capture_sets([str(self._folder)])
        files = FollowedFiles.of(one)
        assert files is not None
        if self.state or self._followed is None:
            terms = FollowerTerms(str(self._folder), tuple(TABLES), rows_of_tables.USUAL_TERMS, {})
            self._followed = follower._FollowedSet(terms)
            if self.state:
                self._followed.load(self.state)
        try:
            done = self._followed.step(Step(files.read, files.empty, "", ""))
        except PipelineError as error:
            if "octets came again" not in str(error):
                raise
            # The set is analysed anew then.
            self.state, self._followed, self.final = b"", None, []
            self.anew += 1
            self.step()
            return
        self.final += done.final
        assert by_table(self.final + done.open) == whole(one)
        self.state = b""
        try:
            self.state = self._followed.keep()
        except NotKept as error:
            self.refused.append(str(error))


def places(octets: bytes, capture: Path) -> list[int]:
    """Where packets end, as many as are tried."""
    packets = packets_in(octets)
    ends = [24]
    for packet in packets:
        ends.append(ends[-1] + 16 + len(packet.data))
    ends = [end for end in ends[1:] if end <= len(octets)]
    if len(ends) > NARROW:
        ends = sorted({*Random(capture.name).sample(ends[:-1], NARROW), ends[-1]})
    return ends


@pytest.mark.parametrize(
    "capture", [*SOME, *share(BUNDLED, 25, "states")] if in_ci() else SOME, ids=lambda path: path.stem
)
def test_a_state_after_every_packet(tmp_path: Path, capture: Path) -> None:
    octets = capture.read_bytes()
    if capture.suffix == ".pcapng":
        octets = b"".join(part.octets for part in written(packets_in(octets), "pcap, little-endian"))
    (tmp_path / "in").mkdir()
    file = tmp_path / "in" / "one.pcap"
    handed = Handed(tmp_path / "in")
    for end in places(octets, capture):
        file.write_bytes(octets[:end])
        handed.step()


def state_of(folder: Path, octets: bytes, limit: int = LIMIT) -> bytes:
    """The state of a set of one file."""
    (folder / "one.pcap").write_bytes(octets)
    handed = Handed(folder)
    handed.step()
    assert handed.state or handed.refused
    return handed.state


def opened(state: bytes) -> bytes:
    """A state without compression."""
    import pyarrow as pa

    size = int.from_bytes(state[:8], "big")
    return bytes(pa.decompress(state[8:], size, codec="zstd", asbytes=True))


@pytest.mark.parametrize("capture", [SOME[0], SOME[1], SOME[2], SOME[9]], ids=lambda path: path.stem)
def test_no_password_is_in_it(tmp_path: Path, capture: Path) -> None:
    """Nor is the body of a message that is over."""
    octets = capture.read_bytes()
    secrets, _ = said(capture)
    assert secrets
    states = []
    for number, end in enumerate(places(octets, capture)):
        folder = tmp_path / str(number)
        folder.mkdir()
        states.append(state_of(folder, octets[:end]))
    assert sum(map(bool, states)) > len(states) // 2
    for state in filter(None, states):
        assert not any(secret in opened(state) for secret in secrets)


def test_a_login_under_way(tmp_path: Path) -> None:
    """There is no state while a frame with a password has come in part."""
    octets = (CAPTURES / "amqplib-settle.pcap").read_bytes()
    packets = packets_in(octets)
    (at,) = (number for number, packet in enumerate(packets) if b"made-up-for-captures" in packet.data)
    login = packets[at]
    half = login.data.index(b"made-up-for-captures") + 6
    cut = login._replace(data=login.data[:half])
    for last, kept in ((packets[:at], True), ([*packets[:at], cut], False), (packets[: at + 1], True)):
        folder = tmp_path / f"{len(last)}-{kept}"
        folder.mkdir()
        made = b"".join(part.octets for part in written(last, "pcap, little-endian"))
        assert bool(state_of(folder, made)) == kept


def test_secrets_of_tls(tmp_path: Path) -> None:
    """A set that has some has no state; one that is encrypted and cannot be read has one."""
    pytest.importorskip("cryptography")
    recording = recorded(talk(), Ends.make("1.3"))
    octets = capture_of(recording).capture.pcapng()
    assert state_of(tmp_path, octets)
    header = int.from_bytes(octets[4:8], "little")
    assert not state_of(tmp_path, octets[:header] + secrets_block(recording.keylog) + octets[header:])


class Attack:
    """Runs a function, if a plain unpickler loads it."""

    def __reduce__(self) -> Any:
        return os.mkdir, ("made-by-a-state",)


def test_a_hostile_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It runs nothing."""
    monkeypatch.chdir(tmp_path)
    made = pickle.dumps(Attack())
    with pytest.raises(NotLoaded, match=r"names posix\.mkdir"):
        loaded(made, {})
    assert not Path("made-by-a-state").exists()
    pickle.loads(made)
    assert Path("made-by-a-state").exists()


def of(name: tuple[str, str], *values: Any) -> bytes:
    """A pickle that makes an object of this class, and calls it with values if there are any."""

    class Writer(pickle.Pickler):
        def reducer_override(self, thing: Any) -> Any:
            if isinstance(thing, Attack):
                return object_classes.blank, (name,)
            return NotImplemented

        def persistent_id(self, thing: Any) -> Any:
            return name if isinstance(thing, Counter) else None

    stream = io.BytesIO()
    Writer(stream, 5).dump(Counter() if values else Attack())
    return stream.getvalue()


@pytest.mark.parametrize(
    "name",
    [
        ("amqpscope.pipeline.following", "Followed"),
        ("amqpscope.pipeline.lake", "Lake"),
        ("amqpscope.input.server_keys", "os"),
        ("os", "_wrap_close"),
        ("amqpscope.tracking.amqp10.credit", "Final"),
        ("amqpscope.tracking.no_such_module", "Credit"),
        ("amqpscope.tracking.amqp10.credit", "NO_CREDIT"),
    ],
    ids=lambda name: ".".join(name),
)
def test_classes_that_are_refused(name: tuple[str, str]) -> None:
    with pytest.raises(NotLoaded, match=f"names {name[0]}"):
        loaded(of(name), {})


PAIRS = ("dissectors.values", "Pairs")


class Blank:
    """Pairs without attributes."""

    def __reduce__(self) -> Any:
        return object_classes.blank, (PAIRS,)


class Filled:
    """A thing to which a state gives these values."""

    def __init__(self, thing: Any, values: Any) -> None:
        self.thing, self.values = thing, values

    def __reduce__(self) -> Any:
        return object_classes.fill, (self.thing, self.values)


@pytest.mark.parametrize(
    "hostile",
    [
        Filled(Blank(), ()),
        Filled(Blank(), ((), ())),
        Filled(Blank(), [()]),
        Filled(Counter(), ()),
        Filled([Blank()], ((),)),
    ],
    ids=["too few values", "too many values", "no tuple", "not made", "holds one that was made"],
)
def test_fillings_that_are_refused(hostile: Filled) -> None:
    with pytest.raises(NotLoaded):
        loaded(pickle.dumps(hostile), {})


def test_nothing_is_filled_twice() -> None:
    """Nor is anything that was there before."""
    unpickler = object_reader._Unpickler(b"", {})
    made = unpickler.blank(PAIRS)
    unpickler.fill(made, (((1, 2),),))
    assert made.pairs == ((1, 2),)
    for thing in (made, Pairs(())):
        with pytest.raises(NotLoaded, match="has no Pairs"):
            unpickler.fill(thing, ((),))


@pytest.mark.parametrize("name", ["SenderCredit", "RULES", "Final", "__builtins__", "no_such_name"])
def test_constants_that_are_refused(name: str) -> None:
    with pytest.raises(NotLoaded, match=r"names amqpscope\.tracking\.amqp10\.credit"):
        loaded(of(("amqpscope.tracking.amqp10.credit", name), 1), {})


def modules() -> list[Path]:
    """The files whose classes a state may name."""
    found = []
    for package in (amqpscope, dissectors):
        root = Path(str(package.__file__)).parent
        for path in root.rglob("*.py"):
            name = ".".join(path.relative_to(root.parent).with_suffix("").parts)
            if object_classes.may(name):
                found.append(path)
    return found


def test_no_class_that_a_state_may_name_can_do_harm() -> None:
    """None opens files, starts processes or speaks over the network; no object is a function."""
    harmful = {"os", "subprocess", "socket", "shutil", "tempfile", "pathlib", "ctypes", "pickle", "importlib"}
    bad = []
    # They ask for an environment variable, and whether a library is installed.
    harmless = ("model/note.py", "layers/tls/session.py")
    for path in [path for path in modules() if not path.as_posix().endswith(harmless)]:
        tree = ast.parse(path.read_text("utf-8"))
        for node in ast.walk(tree):
            names: list[str] = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                names = ["os"] if node.func.id in ("open", "exec", "eval", "__import__") else []
            elif isinstance(node, ast.FunctionDef) and node.name in ("__call__", "__setstate__", "__del__"):
                names = ["os"]
            if harmful.intersection(name.partition(".")[0] for name in names):
                bad.append(f"{path}:{getattr(node, 'lineno', 0)}")
    assert len(modules()) > 200 and bad == []


def test_what_is_shared_stays_shared() -> None:
    one = ["a", OrderedDict(b=1), deque([1], 3), Counter("aab"), datetime.date(2026, 1, 31)]
    there, again, null, outside = loaded(
        dumped((one, one, NO_CREDIT, sys), {("", "sys"): sys}, LIMIT), {("", "sys"): sys}
    )
    assert there == one and again is there and null is NO_CREDIT and outside is sys


def test_what_cannot_be_kept() -> None:
    with pytest.raises(NotKept, match="is too large"):
        dumped(["x" * 100], {}, 50)
    with pytest.raises(NotKept, match="holds a pathlib"):
        dumped([Path()], {}, LIMIT)


def test_a_state_that_is_damaged(tmp_path: Path) -> None:
    """Whatever is wrong with it, one line says so."""
    state = state_of(tmp_path, TEN.read_bytes())
    random = Random(1)
    terms = FollowerTerms(str(tmp_path), tuple(TABLES), rows_of_tables.USUAL_TERMS, {})
    plain = opened(state)
    lines = []
    for _ in range(60):
        bad = bytearray(plain)
        for _ in range(random.randrange(1, 4)):
            bad[random.randrange(len(bad))] = random.randrange(256)
        try:
            loaded(bytes(bad), follower._FollowedSet(terms)._outside())
        except NotLoaded as error:
            lines.append(str(error))
    assert len(lines) > 5 and not any("\n" in line for line in lines)
    for bad in (b"", state[:8], state[:-5], bytes(8) + state[8:], b"\xff" * 40):
        with pytest.raises(NotLoaded):
            follower._FollowedSet(terms).load(bytes(bad))
