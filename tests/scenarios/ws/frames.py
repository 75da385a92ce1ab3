"""The frames of WebSocket, and the messages in them."""

from __future__ import annotations

from scenarios.pairs import legal, pair
from support.dialogue_ws import DialogueWs

PING, PONG, CLOSE = 0x89, 0x8A, 0x88


def _begun(d: DialogueWs) -> None:
    d.upgraded()
    d.linked()


def _closed(d: DialogueWs, code: bytes = b"\x03\xe8") -> None:
    d.client.close()
    d.server.close()
    d.client.message(code, first=CLOSE)
    d.server.message(code, first=CLOSE)
    d.tcp.goodbye()


@pair("WS-MASK")
def client_without_mask(d: DialogueWs) -> None:
    _begun(d)
    said = d.client.message(b"alive", first=PING, mask=not d.wrong)
    if d.wrong:
        said.breaks("WS-MASK")
    d.server.message(b"alive", first=PONG)
    _closed(d)


@pair("WS-UNMASKED")
def server_with_mask(d: DialogueWs) -> None:
    _begun(d)
    said = d.server.message(b"alive", first=PING, mask=d.wrong)
    if d.wrong:
        said.breaks("WS-UNMASKED")
    d.client.message(b"alive", first=PONG)
    _closed(d)


@pair("WS-RSV")
def reserved_bit(d: DialogueWs) -> None:
    _begun(d)
    said = d.client.message(b"alive", first=PING | (0x20 if d.wrong else 0))
    if d.wrong:
        said.breaks("WS-RSV")
    _closed(d)


@pair("WS-RSV")
def compressed_without_agreement(d: DialogueWs) -> None:
    _begun(d)
    said = d.server.message(b"alive", first=PING | (0x40 if d.wrong else 0))
    if d.wrong:
        said.breaks("WS-RSV")
    _closed(d)


@pair("WS-OPCODE")
def reserved_opcode(d: DialogueWs) -> None:
    _begun(d)
    said = d.client.message(b"alive", first=0x83 if d.wrong else PING)
    if d.wrong:
        said.breaks("WS-OPCODE")
    _closed(d)


@pair("WS-CONTROL")
def control_frame_too_long(d: DialogueWs) -> None:
    _begun(d)
    said = d.server.message(bytes(126 if d.wrong else 125), first=PING)
    if d.wrong:
        said.breaks("WS-CONTROL")
    _closed(d)


@pair("WS-CONTROL")
def control_frame_in_fragments(d: DialogueWs) -> None:
    _begun(d)
    said = d.client.message(b"alive", first=PING & 0x7F if d.wrong else PING)
    if d.wrong:
        said.breaks("WS-CONTROL")
    _closed(d)


@pair("WS-FRAGMENT")
def continuation_of_nothing(d: DialogueWs) -> None:
    _begun(d)
    said = d.client.message(b"", first=0x80 if d.wrong else 0x82)
    if d.wrong:
        said.breaks("WS-FRAGMENT")
    _closed(d)


@pair("WS-FRAGMENT")
def message_in_a_message(d: DialogueWs) -> None:
    _begun(d)
    d.server.message(b"", first=0x02)
    d.server.message(b"alive", first=PING)
    said = d.server.message(b"", first=0x82 if d.wrong else 0x80)
    if d.wrong:
        said.breaks("WS-FRAGMENT")
    _closed(d)


@pair("WS-LENGTH")
def length_with_too_many_octets(d: DialogueWs) -> None:
    _begun(d)
    said = d.server.message(b"", wide=8 if d.wrong else -1)
    if d.wrong:
        said.breaks("WS-LENGTH")
    _closed(d)


@pair("WS-LENGTH")
def length_of_sixty_four_bits(d: DialogueWs) -> None:
    _begun(d)
    if d.wrong:
        d.server.raw(b"\x82\x7f\x80" + bytes(7)).breaks("WS-LENGTH")
    else:
        d.server.message(b"")
    _closed(d)


@pair("WS-CLOSE-CODE")
def code_that_is_never_sent(d: DialogueWs) -> None:
    _begun(d)
    d.client.close()
    d.server.close()
    said = d.client.message(b"\x03\xee" if d.wrong else b"\x03\xe9", first=CLOSE)
    if d.wrong:
        said.breaks("WS-CLOSE-CODE")
    d.server.message(b"", first=CLOSE)
    d.tcp.goodbye()


@pair("WS-CLOSE-CODE")
def half_a_code(d: DialogueWs) -> None:
    _begun(d)
    d.client.close()
    d.server.close()
    said = d.server.message(b"\x03" if d.wrong else b"\x03\xe9bye", first=CLOSE)
    if d.wrong:
        said.breaks("WS-CLOSE-CODE")
    d.tcp.goodbye()


@pair("WS-AFTER-CLOSE")
def data_after_the_close_frame(d: DialogueWs) -> None:
    _begun(d)
    d.client.close()
    d.server.close()
    d.client.message(b"\x03\xe8", first=CLOSE)
    if d.wrong:
        d.client.message(b"").breaks("WS-AFTER-CLOSE")
    d.server.message(b"\x03\xe8", first=CLOSE)
    d.tcp.goodbye()


@pair("WS-BINARY")
def text_message(d: DialogueWs) -> None:
    _begun(d)
    said = d.client.message(b"", first=0x81 if d.wrong else 0x82)
    if d.wrong:
        said.breaks("WS-BINARY")
    _closed(d)


@legal("fragments with a ping between them, empty frames, and a close without a code")
def odd_frames(d: DialogueWs) -> None:
    _begun(d)
    d.client.message(b"", first=0x02)
    d.client.message(b"alive", first=PING)
    d.server.message(b"alive", first=PONG)
    d.client.message(b"", first=0x00)
    d.client.message(b"", first=0x80)
    _closed(d, b"")


@legal("a data frame that crosses the close frame of the other peer")
def data_crosses_a_close_frame(d: DialogueWs) -> None:
    _begun(d)
    d.client.close()
    d.server.close()
    with d.on_their_way():
        d.client.message(b"\x03\xe8", first=CLOSE)
        d.server.message(b"")
    d.server.message(b"\x03\xe8", first=CLOSE)
    d.tcp.goodbye()
