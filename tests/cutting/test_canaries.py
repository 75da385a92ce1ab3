"""`cut --anonymise`: secrets wherever somebody may put them, in every form, and none comes through.

The findings stay. Names in their plain form are also recorded octet by octet.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from support import amqp091_encode as methods
from support import amqp10_encode as amqp
from support import draft2011_encode as draft
from support.commands import amqpscope
from support.conversation import Conversation
from support.dialogue import Dialogue
from support.dialogue091 import Dialogue091
from support.dialogue_draft2011 import Dialogue2011
from support.dialogue_ws import NONCE, DialogueWs
from support.recorded import packets_of
from support.rewritten import Rewriting, rewritten
from support.secret_canary import MARKER, SecretSearch

# A name, in forms that somebody may write it in. The last ones are no UTF-8.
FORMS: dict[str, bytes] = {
    "plain": MARKER.encode(),
    "hexadecimal": MARKER.encode().hex().encode(),
    "base64": base64.b64encode(MARKER.encode()),
    "every octet percent-encoded": "".join(f"%{one:02x}" for one in MARKER.encode()).encode(),
    "percent-encoded umlauts": quote("Größenwahnä").encode(),
    "percent-encoded Latin-1": b"Gr%F6%DFenwahn%E4",
    "Cyrillic": "секретный".encode(),
    "UTF-16": MARKER.encode("utf-16-le"),
    "UTF-16, big end first": MARKER.encode("utf-16-be"),
    "Latin-1": "Größenwahn".encode("latin-1"),
    "KOI8-R": "секретный".encode("koi8-r"),
}

TEXTS = [form for form, octets in FORMS.items() if b"\0" not in octets and form not in ("Latin-1", "KOI8-R")]

# Standard words, where none of them may stay.
WORDS = b"the password is secret"

SECRETS = [*FORMS.values(), "Größenwahn", "секретный", WORDS]


def conversation10(secret: bytes) -> Dialogue:
    name, words = amqp.string(secret), amqp.string(WORDS)
    d = Dialogue()
    d.client.header(3)
    d.server.header(3)
    d.server.mechanisms("PLAIN")
    d.client.init(initial_response=amqp.binary(b"\0" + secret + b"\0" + WORDS), hostname=name)
    d.server.outcome()
    facts = [(amqp.symbol("product"), amqp.string("Any")), (amqp.symbol("tenant"), name)]
    d.opened(client={"container_id": name, "hostname": name, "properties": amqp.map_(facts)})
    d.client.begin()
    d.server.begin()
    facts = [(amqp.symbol("product"), name), (amqp.symbol("x-tenant"), name)]
    ends: dict[str, Any] = {
        "name": name,
        "source": amqp.source(address=amqp.string(b"/queues/" + secret)),
        "target": amqp.target(address=name),
    }
    d.client.attach(properties=amqp.map_(facts), **ends)
    d.server.attach(True, **ends)
    d.server.flow(handle=0, link_credit=10)
    head = amqp.properties(
        message_id=name,
        user_id=amqp.binary(WORDS),
        to=name,
        subject=name,
        reply_to=name,
        correlation_id=amqp.binary(secret),
        group_id=name,
    )
    own = amqp.application_properties([(amqp.string("information"), name)])
    notes = amqp.message_annotations([(amqp.symbol("x-opt-copyright"), name)])
    bodies = [
        amqp.amqp_value(words),
        amqp.amqp_value(amqp.map_([(amqp.string("product"), amqp.list_([name]))])),
        amqp.amqp_value(amqp.described(amqp.symbol("any:type"), words)),
        amqp.amqp_sequence([words, amqp.binary(secret)]),
        amqp.data(secret + WORDS),
    ]
    for body in bodies:
        d.client.transfer(notes + head + own + body, delivery_tag=amqp.binary(secret[:32]), settled=True)
    d.client.detach(error="amqp:internal-error")
    d.server.detach()
    d.goodbye()
    return d


def bare10(secret: bytes) -> Dialogue:
    """Values where the specification has others, or none."""
    d = Dialogue()
    d.linked()
    d.client.transfer(amqp.string(secret), settled=True)
    d.client.flow(handle=amqp.string(secret))
    d.client.frame(amqp.list_([amqp.string(secret), amqp.symbol(secret)]))
    d.client.fin()
    return d


def conversation_draft(secret: bytes) -> Dialogue2011:
    d = Dialogue2011()
    d.opened(client={"container_id": amqp.string(secret), "hostname": amqp.string(secret)})
    d.client.begin()
    d.server.begin()
    d.attached(4, client={"name": amqp.string(secret)})
    bodies = [
        draft.amqp_data(amqp.string(secret), amqp.string(WORDS)),
        draft.amqp_map([(amqp.string("product"), amqp.string(secret))]),
        draft.amqp_list([amqp.string(WORDS), amqp.binary(secret)]),
        draft.data(secret + WORDS),
    ]
    for body in bodies:
        d.client.transfers(
            [draft.properties(message_id=amqp.binary(secret), to=amqp.string(secret)), body],
            120,
            settled=True,
        )
    d.goodbye()
    return d


def conversation091(secret: bytes) -> Dialogue091:
    name = secret.decode("latin-1") if secret.isascii() else secret.decode()
    d = Dialogue091()
    entry = methods.table({"LOGIN": name, "PASSWORD": WORDS.decode()})[4:]
    properties = {"product": "Any", "tenant": name, "capabilities": {"information": name}}
    d.opened(
        start_ok={"mechanism": "AMQPLAIN", "response": entry, "properties": properties},
        virtual_host=name,
    )
    d.channel()
    d.declare_exchange(name)
    d.declare(name, arguments={"x-dead-letter-exchange": name})
    d.bind(name, name, routing_key=f"{name}.#")
    headers = {"product": name, "version": {"copyright": name}, name: "platform"}
    d.client.publish(
        secret + WORDS,
        exchange=name,
        routing_key=name,
        headers=headers,
        message_id=name,
        correlation_id=WORDS.decode(),
        reply_to=name,
        app_id=name,
        expiration=name,
        user_id=name,
    )
    d.consume(name, consumer_tag=name)
    d.server.close_channel(404, f"NOT_FOUND - no queue '{name}' in vhost '/'")
    d.client.channel_close_ok()
    d.goodbye()
    return d


def conversation_websocket(secret: bytes) -> DialogueWs:
    d = DialogueWs()
    name = secret.decode("latin-1")
    fields = {
        "Host": f"{name}.example",
        "Upgrade": "websocket",
        "Connection": "Upgrade",
        f"X-{name}": "none",
        "Authorization": f"Basic {WORDS.decode()}",
        "Cookie": f"session={name}:{name}",
        "Sec-WebSocket-Key": NONCE,
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Protocol": f"amqp, {name}",
    }
    lines = [f"GET /{name}?token={name} HTTP/1.1", *(f"{key}: {value}" for key, value in fields.items())]
    d.client.raw("\r\n".join([*lines, "", ""]).encode("latin-1"))
    d.server.raw(_answer())
    d.linked(client={"name": amqp.string(secret)})
    with d.capture.reordered(1, 0), d.on_their_way():
        d.client.transfer(amqp.data(secret), settled=True)
        d.client.transfer(amqp.data(WORDS), settled=True)
    d.client.message(secret, first=0x89)
    d.client.message(b"\x03\xe8" + secret, first=0x88)
    d.server.message(b"\x03\xe8" + secret, first=0x88)
    d.tcp.goodbye()
    return d


def _answer() -> bytes:
    lines = ["HTTP/1.1 101 Switching Protocols", "Upgrade: websocket", "Connection: Upgrade"]
    digest = hashlib.sha1(NONCE.encode() + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest()
    lines += [
        f"Sec-WebSocket-Accept: {base64.b64encode(digest).decode()}",
        "Sec-WebSocket-Protocol: amqp",
        "",
        "",
    ]
    return "\r\n".join(lines).encode()


def behind_a_proxy(secret: bytes) -> Dialogue:
    d = Dialogue()
    d.client.say(b"PROXY TCP4 203.0.113.77 10.20.30.44 50000 5672\r\n")
    d.linked(client={"name": amqp.string(secret)})
    d.goodbye()
    return d


def behind_a_cut_header(secret: bytes) -> Dialogue:
    d = Dialogue()
    d.client.say(b"PROXY TCP4 203.0.113.77 10.20.30.44 ")
    with d.missed():
        d.client.say(b"50000 5672\r\n")
    d.linked(client={"name": amqp.string(secret)})
    d.goodbye()
    return d


def unassigned_codes(secret: bytes) -> Dialogue:
    """Values with format codes of earlier drafts, and with those that nobody ever assigned."""
    d = Dialogue()
    d.begun()
    for handle, code in enumerate((0xA2, 0xA9, 0xB2, 0xB9)):
        size = len(secret).to_bytes(4 if code >= 0xB0 else 1, "big")
        d.client.attach(handle=handle, name=amqp.raw(bytes([code]) + size + secret))
    d.client.fin()
    return d


TALKS: list[tuple[Callable[[bytes], Conversation], list[str]]] = [
    (conversation10, list(FORMS)),
    (bare10, TEXTS),
    (conversation_draft, list(FORMS)),
    (conversation091, TEXTS),
    (conversation_websocket, TEXTS[:4]),
    (behind_a_proxy, ["plain"]),
    (behind_a_cut_header, ["plain"]),
    (unassigned_codes, ["plain", "UTF-16", "UTF-16, big end first", "KOI8-R"]),
]


@pytest.mark.parametrize(
    ("talk", "form", "each"),
    [
        (talk, form, each)
        for talk, forms in TALKS
        for form in forms
        for each in ((0, 1) if form == "plain" else (0,))
    ],
)
def test_no_secret_comes_through(
    talk: Callable[[bytes], Conversation],
    form: str,
    each: int,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    before, after = tmp_path / "in.pcap", tmp_path / "out.pcapng"
    talk(FORMS[form]).capture.write(before)
    before.write_bytes(rewritten(before, Rewriting(cut=each)))
    result = amqpscope(capsys, "cut", before, "-o", after, "--anonymise", "--key", "one")
    assert result.status == 0 and "left out" not in result.err, result.err
    found = []
    for path in (before, after):
        lines = amqpscope(capsys, "check", "--no-config", "--format", "ndjson", path).lines
        keys = ("rule", "peer", "certainty", "packet")
        found.append([tuple(json.loads(line)[key] for key in keys) for line in lines])
    assert found[0] == found[1]
    packets = [packets_of(path.read_bytes())[0] for path in (before, after)]
    assert len(packets[0]) == len(packets[1])
    search = SecretSearch([*SECRETS, "203.0.113.77", "10.20.30.44"])
    shown = amqpscope(capsys, "read", "-vv", "--bodies", after)
    for written in (after.read_bytes(), b"".join(one.data[40:] for one in packets[1]), shown.out):
        assert not search.found_in(written)
