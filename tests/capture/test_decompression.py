"""gzip and zstd undone: the same octets in any chunks, bounded at a time, and all that is before damage."""

from __future__ import annotations

import gzip
import random
import time
import tracemalloc
import zlib
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.compressed import ZSTD, needs_zstd, zstd
from support.sampling import examples

from amqpscope.capture.decompression import Unpacked, compression
from amqpscope.errors import CaptureError
from amqpscope.limits import MAX_ZSTD_WINDOW

MIB = 1024 * 1024
WORDS = b"".join(b"%d octets of a capture, some of them alike; " % n for n in range(9000))
NOISE = random.Random(1).randbytes(200_000)

Compress = Callable[[bytes], bytes]
FORMS = [
    pytest.param(gzip.compress, "gzip", id="gzip"),
    pytest.param(zstd, "zstd", id="zstd", marks=needs_zstd),
]


def source(octets: bytes, sizes: list[int] | None = None) -> Callable[[int], bytes]:
    """A file that gives `octets`, as many at a time as `sizes` says in turn, or as are asked for."""
    place = 0
    turn = 0

    def read(most: int) -> bytes:
        nonlocal place, turn
        if sizes is not None:
            most = min(most, sizes[turn % len(sizes)])
            turn += 1
        block = octets[place : place + most]
        place += len(block)
        return block

    return read


def unpack(octets: bytes, sizes: list[int] | None = None, most: int = MIB) -> tuple[bytes, Unpacked]:
    unpacked = Unpacked(source(octets, sizes))
    out = []
    while block := unpacked.read1(most):
        assert len(block) <= most
        out.append(block)
    assert unpacked.read1(most) == b""
    return b"".join(out), unpacked


@pytest.mark.parametrize(("compress", "form"), FORMS)
@pytest.mark.parametrize("octets", [b"", b"x", WORDS, NOISE, bytes(5 * MIB)], ids=len)
def test_what_was_compressed_comes_out(compress: Compress, form: str, octets: bytes) -> None:
    packed = compress(octets)
    out, unpacked = unpack(packed)
    assert out == octets
    assert (unpacked.form, unpacked.damage, unpacked.octets_taken) == (form, "", len(packed))


@pytest.mark.parametrize("octets", [b"", b"a", b"abc", b"\x1f", b"\x1f\x8a\x08\0", NOISE, WORDS], ids=len)
def test_what_is_not_compressed_goes_through(octets: bytes) -> None:
    for sizes in (None, [1], [3, 70_000]):
        out, unpacked = unpack(octets, sizes, 1000)
        assert (out, unpacked.form, unpacked.damage) == (octets, "", "")
        assert unpacked.octets_taken == len(octets)


@pytest.mark.parametrize(("compress", "form"), FORMS)
@given(
    sizes=st.lists(st.integers(1, 3000), min_size=1, max_size=8),
    most=st.integers(1, 5000),
    parts=st.lists(st.sampled_from([b"", b"a", WORDS[:2500], NOISE[:1500], bytes(9000)]), max_size=4),
)
@settings(max_examples=examples(40))
def test_any_chunks_and_any_number_of_streams(
    compress: Compress, form: str, sizes: list[int], most: int, parts: list[bytes]
) -> None:
    packed = b"".join(compress(part) for part in [b"begin", *parts])
    out, unpacked = unpack(packed, sizes, most)
    assert out == b"begin" + b"".join(parts)
    assert unpacked.damage == ""


def test_which_octets_say_so() -> None:
    assert compression(b"\x1f\x8b\x08\x00") == "gzip"
    assert compression(b"\x28\xb5\x2f\xfd") == "zstd"
    for first in (0x50, 0x5F):
        assert compression(bytes([first]) + b"\x2a\x4d\x18") == "zstd"
    for other in (
        b"\x60\x2a\x4d\x18",
        b"\x4f\x2a\x4d\x18",
        b"\x28\xb5\x2f\xfc",
        b"\x1f\x8c\x08\0",
        b"",
        b"\x1f",
    ):
        assert compression(other) == ""


@needs_zstd
def test_a_zstd_frame_to_be_skipped_comes_first() -> None:
    out, unpacked = unpack(b"\x50\x2a\x4d\x18\x04\0\0\0skip" + zstd(WORDS))
    assert (out, unpacked.form, unpacked.damage) == (WORDS, "zstd", "")


def test_zeros_behind_gzip_are_nothing() -> None:
    packed = gzip.compress(WORDS)
    for octets in (packed + bytes(700), packed + bytes(3) + packed):
        for sizes in (None, [1], [100]):
            out, unpacked = unpack(octets, sizes)
            assert (out, unpacked.damage) == (WORDS * octets.count(packed), "")


def test_other_octets_behind_gzip_are_reported() -> None:
    for sizes in (None, [1]):
        out, unpacked = unpack(gzip.compress(WORDS) + bytes(9) + b"other", sizes)
        assert out == WORDS
        assert unpacked.damage_code == "capture/corrupt"
        assert unpacked.damage.startswith(
            f"octets that are not gzip data follow after {len(WORDS)} decompressed octets"
        )


@pytest.mark.parametrize(("compress", "form"), FORMS)
def test_cut_anywhere_gives_what_is_before_and_says_so(compress: Compress, form: str) -> None:
    packed = compress(WORDS)
    for size in [*range(4, 40), *range(40, len(packed), 997), len(packed) - 1]:
        out, unpacked = unpack(packed[:size])
        assert WORDS.startswith(out)
        assert unpacked.damage_code == "capture/truncated", size
        assert unpacked.damage.startswith(
            f"the {form} data are cut short after {len(out)} decompressed octets"
        )
        if form == "gzip":
            whole = zlib.decompressobj(31)
            assert out == whole.decompress(packed[:size])
        if size < 40 or size % 5 == 0:
            assert unpack(packed[:size], None, 100)[0] == out
    assert len(unpack(packed[:-1])[0]) > len(WORDS) - 128 * 1024


def test_what_is_before_damage_is_given_to_the_octet() -> None:
    """A block type that there is none of, behind a stretch that is flushed."""
    member = zlib.compressobj(6, zlib.DEFLATED, 31)
    packed = member.compress(WORDS) + member.flush(zlib.Z_FULL_FLUSH) + b"\x07" * 2000
    for sizes in (None, [1000]):
        for most in (MIB, 777):
            out, unpacked = unpack(packed, sizes, most)
            assert out == WORDS
            assert unpacked.damage_code == "capture/corrupt"
            assert unpacked.damage.startswith(
                f"the gzip data are damaged after {len(WORDS)} decompressed octets"
            )


def test_a_wrong_sum_at_the_end() -> None:
    packed = bytearray(gzip.compress(WORDS))
    packed[-6] ^= 1
    out, unpacked = unpack(bytes(packed))
    assert (out, unpacked.damage_code) == (WORDS, "capture/corrupt")


def frame_header(window: int) -> bytes:
    """Of a zstd frame of unknown size, with a window of 2**window."""
    return b"\x28\xb5\x2f\xfd" + b"\x00" + bytes([(window - 10) << 3])


@needs_zstd
def test_damaged_zstd_gives_what_is_before() -> None:
    first = zstd(WORDS)
    no_such_type = b"\x06\x00\x00"
    for size in range(9000, 11_000, 250):
        literal = (size << 3).to_bytes(3, "little") + NOISE[:size]  # a block that is not the last
        out, unpacked = unpack(first + frame_header(20) + literal + no_such_type + bytes(5000))
        assert (WORDS + NOISE[:size]).startswith(out)
        assert len(out) >= len(WORDS) + size - 1024  # the octets that came with the damage may go with it
        assert unpacked.damage_code == "capture/corrupt"
    out, unpacked = unpack(first + b"something else")
    assert (out, unpacked.damage_code) == (WORDS, "capture/corrupt")


@pytest.mark.parametrize(("compress", "form"), FORMS)
@given(place=st.floats(0, 1), flip=st.integers(1, 255), most=st.sampled_from([100, MIB]))
@settings(max_examples=examples(60))
def test_any_damage_ends_somewhere(compress: Compress, form: str, place: float, flip: int, most: int) -> None:
    packed = bytearray(compress(WORDS[:30_000]))
    packed[4 + int(place * (len(packed) - 5))] ^= flip
    out, _ = unpack(bytes(packed), None, most)
    assert len(out) < 100 * MIB


@needs_zstd
@pytest.mark.parametrize("size", [1, 5, 1000])
def test_a_large_zstd_window_is_refused_by_name(size: int) -> None:
    """Frames of three octets that ask for windows as `zstd --long` and `--ultra -22` do, or for more."""
    block = b"\x19\x00\x00" + b"abc"
    assert unpack(frame_header(MAX_ZSTD_WINDOW) + block)[0] == b"abc"
    for window in (MAX_ZSTD_WINDOW + 1, 27, 31):
        out, unpacked = unpack(zstd(WORDS) + frame_header(window) + block, [size])
        assert (out, unpacked.damage_code) == (WORDS, "capture/compression")
        assert (
            f"need a window of {2**window // MIB} MiB, but amqpscope uses at most 32 MiB" in unpacked.damage
        )
        assert f"zstd -dc --long={window})" in unpacked.damage
    # In one segment: the window is the size of it all.
    whole = b"\x28\xb5\x2f\xfd\xe0" + (2**33 + 1).to_bytes(8, "little") + block
    assert "zstd -dc --long=34" in unpack(whole)[1].damage


@needs_zstd
def test_a_zstd_file_made_with_a_long_window() -> None:
    octets = NOISE * 3 + bytes(40 * MIB) + NOISE
    options = {
        ZSTD.CompressionParameter.window_log: 27,
        ZSTD.CompressionParameter.enable_long_distance_matching: 1,
        ZSTD.CompressionParameter.content_size_flag: 0,
    }
    out, unpacked = unpack(ZSTD.compress(octets, options=options))
    assert (out, unpacked.damage_code) == (b"", "capture/compression")
    assert "need a window of 64 MiB" in unpacked.damage


def bomb(form: str) -> bytes:
    """256 MiB of zeros; in zstd 64 times one frame, so that it is as small as it can be."""
    if form == "gzip":
        member = zlib.compressobj(9, zlib.DEFLATED, 31)
        return b"".join(member.compress(bytes(MIB)) for _ in range(256)) + member.flush()
    return zstd(bytes(4 * MIB)) * 64


@pytest.mark.parametrize("form", ["gzip", pytest.param("zstd", marks=needs_zstd)])
def test_a_bomb_takes_time_and_no_memory(form: str) -> None:
    packed = bomb(form)
    assert len(packed) < 300_000
    unpacked = Unpacked(source(packed))
    began = time.process_time()
    tracemalloc.start()
    size = 0
    while block := unpacked.read1(MIB):
        size += len(block)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (size, unpacked.damage) == (256 * MIB, "")
    assert peak < 12 * MIB
    assert time.process_time() - began < 20


def test_without_zstd_one_line_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr("importlib.import_module", nothing)
    with pytest.raises(CaptureError) as caught:
        unpack(b"\x28\xb5\x2f\xfd" + bytes(20))
    assert str(caught.value) == "compressed with zstd; to read it: pip install 'amqpscope[zstd]'"


def test_zstd_is_tested_where_the_tests_say_they_need_it() -> None:
    """The extra `test` brings it; a run without it skips, and says so here."""
    if ZSTD is None:
        pytest.skip("backports.zstd is not installed")
    assert zstd(b"")[:4] == b"\x28\xb5\x2f\xfd"
