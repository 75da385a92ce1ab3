"""The hello of a TLS stream, whole or not, as octets might have it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from scenarios.amqp10.tls import GROUPS, SERVER_NAME, hello

from dissectors import tls
from dissectors.amqp10.frame import FrameDecoder

HEADER = b"AMQP\2\1\0\0"


def test_a_client_that_names_the_server() -> None:
    for extensions in ((SERVER_NAME,), (GROUPS, SERVER_NAME), (SERVER_NAME, GROUPS)):
        found = tls.hello(hello(1, *extensions))
        assert found is not None and found.client and found.names_server


def test_a_client_that_does_not() -> None:
    for extensions in ((), (GROUPS,), (GROUPS, GROUPS)):
        found = tls.hello(hello(1, *extensions))
        assert found is not None and found.client and not found.names_server


def test_a_server() -> None:
    found = tls.hello(hello(2, GROUPS))
    assert found is not None and not found.client


@given(st.integers(0, 80))
def test_what_is_missing_accuses_nobody(size: int) -> None:
    octets = hello(1, GROUPS)[:size]
    found = tls.hello(octets)
    assert found is None or found.names_server or octets == hello(1, GROUPS)


@given(st.binary(max_size=200), st.integers(0, 56), st.integers(0, 255))
def test_any_octets(octets: bytes, at: int, value: int) -> None:
    tls.hello(octets)
    tls.hello(b"\x16\3\1" + octets)
    damaged = bytearray(hello(1, GROUPS))
    damaged[at] = value
    tls.hello(bytes(damaged))


@given(st.lists(st.integers(1, 40)), st.integers(0, 30))
def test_it_is_heard_however_it_comes(sizes: list[int], carried: int) -> None:
    stream = HEADER + hello(1, GROUPS) + b"\x17\3\3\0\x20" + bytes(32)
    decoder = FrameDecoder()
    at = 0
    for number, size in enumerate([*sizes, len(stream)]):
        decoder.feed(stream, at, min(at + size, len(stream)))
        at = min(at + size, len(stream))
        if number == carried:
            frames = decoder.frames
            decoder = FrameDecoder.load(decoder.dump())
            decoder.frames = frames
    decoder.end("fin")
    _, ciphertext = decoder.frames
    assert isinstance(ciphertext.body, tls.TlsHello)
    assert ciphertext.body.client and not ciphertext.body.names_server


def test_behind_a_hole_it_is_none() -> None:
    decoder = FrameDecoder()
    decoder.feed(HEADER, 0, 8)
    octets = hello(1, GROUPS)
    decoder.feed(octets, 0, 40)
    decoder.gap(10)
    decoder.feed(octets, 50, len(octets))
    decoder.end("fin")
    body = decoder.frames[-1].body
    assert body is None or (isinstance(body, tls.TlsHello) and body.names_server)
