"""Opening and reading captures: what is one, what is none, and what is said of it in one line."""

from __future__ import annotations

import gzip
import io
import os
import struct
import threading
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import amqp10_encode as amqp
from support.amqp10_encode import AMQP_HEADER, frame
from support.compressed import needs_zstd, zstd
from support.remembered_conversation import RememberedConversation, reported
from support.tcp_writer import Capture as Tap
from support.tcp_writer import pcap

import amqpscope
from amqpscope import AmqpscopeError, Capture, CaptureError, CaptureOptions


def tap(frames: int = 3) -> tuple[Tap, RememberedConversation]:
    capture = Tap()
    talk = RememberedConversation(capture)
    talk.tcp.handshake()
    talk.client(AMQP_HEADER, frame(amqp.open_(container_id="client")))
    talk.server(AMQP_HEADER, frame(amqp.open_(container_id="server")))
    for number in range(frames):
        payload = amqp.data(b"x" * number)
        talk.client(frame(amqp.transfer(handle=0, delivery_id=number, delivery_tag=b"t"), payload))
    return capture, talk


def refusal(source: Any) -> str:
    """What is said when a source cannot be read; always one line of a CaptureError."""
    with pytest.raises(CaptureError) as caught:
        list(amqpscope.read(source))
    assert isinstance(caught.value, AmqpscopeError)
    text = str(caught.value)
    assert "\n" not in text
    assert text == text.strip() != ""
    return text


# ---- sources that are captures ----------------------------------------------------------------------------


def test_a_path_as_text_or_path(tmp_path: Path) -> None:
    capture, talk = tap()
    path = capture.write(tmp_path / "x.pcap")
    for source in (path, str(path)):
        with Capture(source) as file:
            assert file.size == path.stat().st_size
            records = list(file)
            assert file.octets_read == file.size
        assert reported(records) == talk.expected()
        assert {one.connection.capture for one in records} == {str(path)}
    assert {one.connection.capture for one in Capture(path, name="mine")} == {"mine"}


def test_pcapng_by_its_octets_not_its_name(tmp_path: Path) -> None:
    capture, talk = tap()
    path = tmp_path / "x.pcap"
    path.write_bytes(capture.pcapng())
    assert reported(amqpscope.read(path)) == talk.expected()


def test_an_open_file_stays_open(tmp_path: Path) -> None:
    capture, talk = tap()
    path = capture.write(tmp_path / "x.pcap")
    with path.open("rb") as file:
        assert reported(amqpscope.read(file)) == talk.expected()
        assert not file.closed
        file.seek(0)
        with Capture(file) as again:
            assert (again.name, again.size) == (str(path), path.stat().st_size)
            assert reported(again) == talk.expected()
        assert not file.closed


def test_a_file_opened_here_is_closed(tmp_path: Path) -> None:
    capture, _ = tap()
    file = Capture(capture.write(tmp_path / "x.pcap"))
    file.close()
    with pytest.raises(CaptureError, match="closed"):
        list(file)


def test_octets_in_memory() -> None:
    capture, talk = tap()
    with Capture(io.BytesIO(capture.pcap(nanoseconds=True))) as file:
        assert (file.name, file.size) == ("stream", None)
        assert reported(file) == talk.expected()


class _Raw(io.RawIOBase):
    """A source without read1, that gives few octets at a time."""

    def __init__(self, octets: bytes, each: int) -> None:
        self.octets = octets
        self.each = each

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        taken = self.octets[: min(self.each, size)]
        self.octets = self.octets[len(taken) :]
        return taken


@pytest.mark.parametrize("each", [1, 2, 3, 5, 23, 100])
def test_a_source_that_gives_few_octets(each: int) -> None:
    capture, talk = tap()
    source: Any = _Raw(capture.pcap(nanoseconds=True), each)
    assert reported(amqpscope.read(source)) == talk.expected()


@given(st.lists(st.integers(1, 400), min_size=1, max_size=30))
@settings(max_examples=30)
def test_any_blocks_of_the_file(sizes: list[int]) -> None:
    capture, talk = tap(8)

    class Blocks(_Raw):
        def read(self, size: int = -1) -> bytes:
            self.each = sizes[len(self.octets) % len(sizes)]
            return super().read(size)

    for octets in (capture.pcap(nanoseconds=True), capture.pcapng()):
        source: Any = Blocks(octets, 1)
        assert reported(amqpscope.read(source)) == talk.expected()


def _feed(writer: int, octets: bytes) -> threading.Thread:
    def write() -> None:
        with os.fdopen(writer, "wb") as file:
            file.write(octets)

    thread = threading.Thread(target=write)
    thread.start()
    return thread


def test_a_pipe() -> None:
    capture, talk = tap(300)  # more than a pipe holds
    reader, writer = os.pipe()
    thread = _feed(writer, capture.pcap(nanoseconds=True))
    with os.fdopen(reader, "rb") as file, Capture(file) as source:
        assert source.size is None
        assert reported(source) == talk.expected()
    thread.join()


def test_frames_come_out_of_a_pipe_before_it_ends() -> None:
    capture, talk = tap(0)
    reader, writer = os.pipe()
    octets = capture.pcap(nanoseconds=True)
    os.write(writer, octets)
    with os.fdopen(reader, "rb") as file:
        records = amqpscope.read(file)
        first = next(records)
        assert reported([first]) == talk.expected()[:1]
        os.close(writer)
        assert reported(records) == talk.expected()[1:]


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    capture, talk = tap()
    standard = io.TextIOWrapper(io.BytesIO(capture.pcap(nanoseconds=True)))
    monkeypatch.setattr("sys.stdin", standard)
    with Capture("-") as file:
        assert file.name == "standard input"
        assert reported(file) == talk.expected()
    assert not standard.buffer.closed
    monkeypatch.setattr("sys.stdin", None)
    assert refusal("-") == "standard input: is closed"


def test_a_capture_without_packets() -> None:
    for octets in (pcap([]), Tap().pcapng()):
        file = Capture(io.BytesIO(octets))
        assert (list(file), file.notes, file.connections) == ([], [], [])


# ---- sources that are none --------------------------------------------------------------------------------


def test_an_empty_file(tmp_path: Path) -> None:
    path = tmp_path / "empty.pcap"
    path.write_bytes(b"")
    assert refusal(path) == f"{path}: the file is empty"
    assert refusal(io.BytesIO()) == "stream: the file is empty"


@pytest.mark.parametrize("octets", [b"\xd4", b"\xd4\xc3\xb2", b"abc"])
def test_a_file_of_a_few_octets(octets: bytes) -> None:
    assert refusal(io.BytesIO(octets)) == "stream: not a capture file"


@pytest.mark.parametrize("octets", [b"hello world\n" * 100, bytes(100), b"{}\n\n", b"\x7fELF" + bytes(90)])
def test_a_file_that_is_no_capture(octets: bytes, tmp_path: Path) -> None:
    path = tmp_path / "other"
    path.write_bytes(octets)
    assert refusal(path) == f"{path}: not a capture file (neither pcap nor pcapng)"


@pytest.mark.parametrize(("octets", "name"), [(b"\xfd7zXZ\0", "xz"), (b"BZh9", "bzip2")])
def test_a_file_compressed_in_a_way_that_is_not_read(octets: bytes, name: str) -> None:
    assert refusal(io.BytesIO(octets + bytes(50))) == f"stream: compressed with {name}; decompress it first"
    twice = gzip.compress(octets + bytes(50))
    assert refusal(io.BytesIO(twice)) == f"stream: compressed with {name} and with gzip; decompress it first"


COMPRESSED = [
    pytest.param(gzip.compress, "gzip", id="gzip"),
    pytest.param(zstd, "zstd", id="zstd", marks=needs_zstd),
]


@pytest.mark.parametrize(("compress", "form"), COMPRESSED)
def test_compressed_captures(compress: Callable[[bytes], bytes], form: str, tmp_path: Path) -> None:
    capture, talk = tap(300)
    for octets in (capture.pcap(nanoseconds=True), capture.pcapng()):
        path = tmp_path / "x.pcap"
        path.write_bytes(compress(octets))
        with Capture(path) as file:
            assert reported(file) == talk.expected()
            assert file.octets_read == file.size == path.stat().st_size
            assert file.notes == []
        source: Any = _Raw(compress(octets), 7)
        assert reported(amqpscope.read(source)) == talk.expected()


@pytest.mark.parametrize(("compress", "form"), COMPRESSED)
def test_compressed_captures_cut_short(compress: Callable[[bytes], bytes], form: str) -> None:
    capture, talk = tap(300)
    packed = compress(capture.pcap(nanoseconds=True))
    file = Capture(io.BytesIO(packed[:-3]))
    records = reported(file)
    assert records == talk.expected()[: len(records)]
    assert len(records) > 100
    assert file.notes[-1].code == "capture/truncated"
    assert file.notes[-1].detail.startswith(f"the {form} data are cut short after ")
    text = refusal(io.BytesIO(packed[:9]))
    assert text.startswith(f"stream: the {form} data are cut short after 0 decompressed octets")


@pytest.mark.parametrize(("compress", "form"), COMPRESSED)
def test_what_is_compressed_and_no_capture(compress: Callable[[bytes], bytes], form: str) -> None:
    inside = f"not a capture file (neither pcap nor pcapng, inside {form})"
    assert refusal(io.BytesIO(compress(b"hello world"))) == f"stream: {inside}"
    assert (
        refusal(io.BytesIO(compress(b"hi")))
        == f"stream: compressed with {form}, but the file contains no capture"
    )
    assert (
        refusal(io.BytesIO(compress(b""))) == f"stream: compressed with {form}, but the file contains nothing"
    )
    twice = compress(compress(tap()[0].pcap()))
    assert refusal(io.BytesIO(twice)) == (
        f"stream: compressed with {form} and with {form}; decompress it first"
    )


def test_compressed_frames_come_out_of_a_pipe_before_it_ends() -> None:
    capture, talk = tap(0)
    reader, writer = os.pipe()
    member = zlib.compressobj(6, zlib.DEFLATED, 31)
    os.write(writer, member.compress(capture.pcap(nanoseconds=True)) + member.flush(zlib.Z_SYNC_FLUSH))
    with os.fdopen(reader, "rb") as file:
        records = amqpscope.read(file)
        assert reported([next(records)]) == talk.expected()[:1]
        os.write(writer, member.flush())
        os.close(writer)
        assert reported(records) == talk.expected()[1:]


def test_damage_in_a_compressed_file_is_reported_of_the_file(tmp_path: Path) -> None:
    """What is judged before it stays judged."""
    capture, talk = tap(5)
    member = zlib.compressobj(6, zlib.DEFLATED, 31)
    octets = capture.pcap(nanoseconds=True)
    packed = member.compress(octets) + member.flush(zlib.Z_FULL_FLUSH) + b"\x07" * 40
    file = Capture(io.BytesIO(packed))
    assert reported(file) == talk.expected()
    (note,) = file.notes
    assert (note.code, note.packet) == ("capture/corrupt", len(capture.packets))
    assert note.detail.startswith(f"the gzip data are damaged after {len(octets)} decompressed octets")


def test_a_directory(tmp_path: Path) -> None:
    assert refusal(tmp_path) == f"{tmp_path}: is a directory, not a capture file"


def test_no_such_file(tmp_path: Path) -> None:
    path = tmp_path / "missing.pcap"
    assert refusal(path) == f"{path}: No such file or directory"
    with pytest.raises(CaptureError):  # at once, not when the first record is asked for
        amqpscope.read(path)


def test_no_permission(tmp_path: Path) -> None:
    path = tmp_path / "secret.pcap"
    path.write_bytes(tap()[0].pcap())
    path.chmod(0)
    if os.access(path, os.R_OK):
        pytest.skip("this user may read everything")
    assert refusal(path) == f"{path}: Permission denied"


def test_a_name_that_cannot_be_one() -> None:
    assert "null" in refusal("a\0b")


def test_a_file_opened_as_text(tmp_path: Path) -> None:
    path = tmp_path / "x.txt"
    path.write_text("text that is long enough")
    with path.open() as file:
        assert refusal(file) == f"{path}: opened as text, not as a binary file"


def test_a_source_that_fails_while_it_is_read() -> None:
    class Failing(_Raw):
        def read(self, size: int = -1) -> bytes:
            if len(self.octets) < 400:
                raise OSError(5, "Input/output error")
            return super().read(size)

    source: Any = Failing(tap()[0].pcap(), 100)
    assert refusal(source) == "stream: Input/output error"


def test_a_capture_is_read_once() -> None:
    file = Capture(io.BytesIO(tap()[0].pcap()))
    assert list(file)
    with pytest.raises(CaptureError, match="can be read only once"):
        list(file)


# ---- damaged files ----------------------------------------------------------------------------------------


def _cut_header(octets: bytes) -> bytes:
    return octets[:-70]


def _cut_packet(octets: bytes) -> bytes:
    return octets[:-10]


@pytest.mark.parametrize("cut", [_cut_header, _cut_packet], ids=["header", "packet"])
def test_a_file_cut_short_is_read_up_to_there(cut: Callable[[bytes], bytes]) -> None:
    capture, talk = tap(5)
    octets = cut(capture.pcap(nanoseconds=True))
    file = Capture(io.BytesIO(octets))
    records = list(file)
    del capture.packets[-1]
    assert reported(records) == talk.expected()
    assert [note.code for note in file.notes] == ["capture/truncated"]
    assert file.notes[0].connection is None


def test_every_cut_gives_the_frames_before_it() -> None:
    capture, talk = tap(2)
    octets = capture.pcap(nanoseconds=True)
    whole = talk.expected()
    for size in range(4, len(octets)):
        file = Capture(io.BytesIO(octets[:size]))
        records = reported(file)
        assert records == whole[: len(records)]
        assert len(file.notes) <= 1


@pytest.mark.parametrize(
    ("gaps", "more"), [(1200, "200 more notes like these"), (1001, "1 more note like these")]
)
def test_notes_of_the_whole_file_are_few(gaps: int, more: str) -> None:
    """Many connections, each with gaps: the first notes, and how many more there were."""
    capture = Tap()
    for port in range(20_000, 20_000 + (gaps + 1) // 2):
        talk = RememberedConversation(capture, f"10.0.0.1:{port}", "10.0.0.2:5672")
        talk.tcp.handshake()
        talk.client(AMQP_HEADER)
        talk.server(AMQP_HEADER)
        if gaps % 2 == 0 or port > 20_000:
            with capture.missed():
                talk.client(frame())
        talk.client(frame())
        with capture.missed():
            talk.client(frame())
        talk.client(frame(amqp.close()))
        talk.server(frame(amqp.close()))
    file = Capture(io.BytesIO(capture.pcap()))
    assert len(list(file)) > gaps * 2
    assert len(file.notes) == 1001
    assert {note.code for note in file.notes} == {"capture/gap"}
    assert file.notes[-1].detail == more
    assert file.notes[-1].connection is None


def test_what_is_counted_when_nothing_is_kept() -> None:
    capture, _ = tap()
    other = capture.connection("10.0.0.1:1000", "10.0.0.2:80")
    other.handshake()
    other.client.send(b"GET / HTTP/1.1\r\n\r\n")
    capture.connection("10.0.0.1:1001", "10.0.0.2:80").client.segment(flags=2)
    for keep in (True, False):
        file = Capture(io.BytesIO(capture.pcap()), CaptureOptions(keep=keep))
        list(file)
        assert file.protocols == {"amqp10": 1, "http": 1, "": 1}
        assert file.spoken == 1
        assert [one.connection.stream for one in file.connections] == ([0, 1, 2] if keep else [])


def test_packet_numbers_are_those_of_the_file() -> None:
    """Packets that carry no TCP count too."""
    capture, _ = tap(0)
    arp = struct.pack(">6s6sH", b"\xff" * 6, b"\2" * 6, 0x0806) + bytes(46)
    capture.packets.insert(4, type(capture.packets[0])(capture.packets[4].time, arp, len(arp)))
    numbers = [int(one.packet) for one in amqpscope.read(io.BytesIO(capture.pcap()))]
    assert numbers == [4, 4, 6, 6]
