"""Hidden: secrets of TLS, WebSocket, CONNECT and SASL are in no output of any command, in no encoding."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

import pytest
from support import amqp10_encode
from support.all_outputs import HAS_PIPELINE, FormOutput, everywhere, stored, written_by
from support.dialogue import Dialogue
from support.dialogue091 import Dialogue091
from support.sampling import in_ci, share
from support.secret_canary import SecretSearch
from support.tls import Ends, TlsRecording, Turn, credentials
from typer.testing import CliRunner

import amqpscope
from amqpscope.cli.main import app

from .test_tls_secrets import capture_of, secrets_block
from .test_websocket import CONNECT, REQUEST, wrapped

pytest.importorskip("cryptography")

PASSWORD = "Xq7GEHEIM9zW"
TOKEN = "k3tz+Wert/u0nd~Sonst=11"
"""What base64, base64url and percent encoding write differently."""
LOGIN = "dem0:" + PASSWORD


def talk10() -> list[Turn]:
    d = Dialogue()
    d.client.header(3)
    d.server.header(3)
    d.server.mechanisms("PLAIN")
    password = b"\0dem0\0" + PASSWORD.encode()
    d.client.sasl_frame(amqp10_encode.sasl_init(mechanism="PLAIN", initial_response=password))
    d.server.sasl_frame(amqp10_encode.sasl_outcome(code=0))
    d.linked(credit=1)
    d.client.transfer()
    d.client.transfer()
    d.goodbye()
    return [Turn(0 if said.peer is d.client else 1, said.octets) for said in d.said if said.octets]


def talk091() -> list[Turn]:
    d = Dialogue091()
    d.opened(start_ok={"response": b"\0dem0\0" + PASSWORD.encode()})
    d.client.method("connection.update-secret", 0, new_secret=TOKEN.encode(), reason="refresh")
    d.server.method("connection.update-secret-ok", 0)
    d.channel()
    d.declare()
    d.client.ack(9)
    d.goodbye()
    return [Turn(0 if said.peer is d.client else 1, said.octets) for said in d.said if said.octets]


HEADERS = {
    "Authorization": f"Bearer {TOKEN}",
    "Cookie": f"session={TOKEN}; other={quote(TOKEN, safe='')}",
    "X-Api-Key": TOKEN,
    "X-Amz-Security-Token": PASSWORD,
}


def request() -> bytes:
    """With tokens wherever clients put them."""
    begin = f"GET /$servicebus/{PASSWORD}/websocket?sig={quote(TOKEN, safe='')}&token={TOKEN} HTTP/1.1\r\n"
    more = "".join(f"{name}: {value}\r\n" for name, value in HEADERS.items())
    return begin.encode() + REQUEST.partition(b"\r\n")[2][:-2] + more.encode() + b"\r\n"


def in_websocket(turns: list[Turn], deflate: str = "") -> list[Turn]:
    first, *others = wrapped(turns, deflate)
    extension = first.octets.partition(b"Sec-WebSocket-Extensions")[2]
    offered = b"Sec-WebSocket-Extensions" + extension if deflate else b"\r\n"
    return [Turn(0, request()[:-2] + offered), *others]


def refused(status: str) -> list[Turn]:
    """The upgrade is refused; the answer repeats what it was asked for."""
    challenge = (
        f'WWW-Authenticate: Bearer realm="{TOKEN}"\r\nSet-Cookie: a={TOKEN}\r\nLocation: /?sig={TOKEN}\r\n'
    )
    answer = f"HTTP/1.1 {status}\r\n{challenge}Content-Length: {len(TOKEN)}\r\n\r\n{TOKEN}"
    return [Turn(0, request()), Turn(1, answer.encode())]


def subprotocol(turns: list[Turn]) -> list[Turn]:
    """Browsers cannot send headers of their own, so some send a token as one more subprotocol."""
    octets = turns[0].octets.replace(b"AMQPWSB10, amqp", f"amqp, bearer.{PASSWORD}, {TOKEN}".encode())
    assert octets != turns[0].octets
    return [Turn(0, octets), *turns[1:]]


def through_a_proxy(turns: list[Turn]) -> list[Turn]:
    """The proxy demands credentials, and is given them."""
    credentials_of = base64.b64encode(LOGIN.encode()).decode()
    more = f"Proxy-Authorization: Basic {credentials_of}\r\nX-Token: {TOKEN}\r\n\r\n".encode()
    demand = Turn(1, b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
    return [CONNECT[0], demand, Turn(0, CONNECT[0].octets[:-2] + more), CONNECT[1], *turns]


REFUSALS = ("the capture has only", "no connection can be anonymised")


class Case(NamedTuple):
    """A capture. options: with which it is read. secrets: beside those that all have. block: the secrets in
    the file. read: whether there are frames.
    """

    turns: list[Turn]
    options: tuple[str, ...] = ()
    secrets: tuple[bytes, ...] = ()
    block: bytes = b""
    read: bool = True


@cache
def tls(version: str, suite: str, websocket: bool) -> TlsRecording:
    recording = TlsRecording(Ends.make(version, suite))
    turns = talk10() if version == "1.3" else talk091()
    for turn in in_websocket(turns, "takeover") if websocket else turns:
        recording.say(turn.direction, turn.octets)
    return recording


def secrets_in(keylog: bytes) -> tuple[bytes, ...]:
    lines = [line for line in keylog.splitlines() if line and not line.startswith(b"#")]
    return tuple(bytes.fromhex(line.split()[2].decode()) for line in lines)


def changed(keylog: bytes) -> bytes:
    """The same secrets, but for their last octets."""
    return (
        b"\n".join(line[:-4] + b"abcd" for line in keylog.splitlines() if not line.startswith(b"#")) + b"\n"
    )


def cases(folder: Path) -> dict[str, Case]:
    modern, old = tls("1.3", "", True), tls("1.2", "AES128-SHA256", False)
    keys, wrong, others = (folder / name for name in ("keys.txt", "wrong.txt", "others.txt"))
    keys.write_bytes(modern.keylog)
    wrong.write_bytes(changed(modern.keylog) + changed(old.keylog))
    others.write_bytes(TlsRecording(version="1.3").keylog)
    pem = credentials("rsa")
    private = tuple(base64.b64decode(line) for line in Path(pem).read_bytes().splitlines()[1:20])
    shown, hidden = secrets_in(modern.keylog), secrets_in(old.keylog)
    return {
        "WebSocket": Case(in_websocket(talk10())),
        "WebSocket, compressed": Case(in_websocket(talk10(), "takeover")),
        "WebSocket, 0-9-1": Case(in_websocket(talk091())),
        "401": Case(refused("401 Unauthorized"), read=False),
        "403": Case(refused("403 Forbidden"), read=False),
        "a proxy": Case(through_a_proxy(in_websocket(talk10()))),
        "a token for a subprotocol": Case(subprotocol(in_websocket(talk10()))),
        "TLS, a key log": Case(modern.turns, ("--tls-keylog", str(keys)), shown),
        "TLS, in the file": Case(modern.turns, (), shown, modern.keylog),
        "TLS, through a proxy": Case(through_a_proxy(modern.turns), (), shown, modern.keylog),
        "TLS, a private key": Case(old.turns, ("--tls-key", pem), (*hidden, *private)),
        "TLS, wrong secrets": Case(
            modern.turns, ("--tls-keylog", str(wrong)), secrets_in(wrong.read_bytes()), read=False
        ),
        "TLS, wrong in the file": Case(
            old.turns, (), secrets_in(changed(old.keylog)), changed(old.keylog), False
        ),
        "TLS, of others": Case(
            old.turns,
            ("--tls-keylog", str(others), "--tls-key", pem),
            (*secrets_in(others.read_bytes()), *private),
        ),
        "TLS, from the middle on": Case(
            modern.turns[modern.handshake + 3 :], ("--tls-keylog", str(keys)), shown, read=False
        ),
    }


NAMES = [
    *("WebSocket", "WebSocket, compressed", "WebSocket, 0-9-1", "401", "403", "a proxy"),
    *("a token for a subprotocol", "TLS, a key log"),
    *("TLS, in the file", "TLS, through a proxy", "TLS, a private key", "TLS, wrong secrets"),
    *("TLS, wrong in the file", "TLS, of others", "TLS, from the middle on"),
]


def search(case: Case) -> SecretSearch:
    login = base64.b64encode(LOGIN.encode())
    return SecretSearch([PASSWORD, TOKEN, LOGIN, quote(TOKEN, safe=""), login, *case.secrets])


def outputs(path: Path, case: Case, folder: Path) -> Iterator[FormOutput]:
    packets = range(4, 4 + len(case.turns), 1 if in_ci() else 7)
    every = [*everywhere(path, packets, case.options)]
    yield from every if in_ci() else share(every, 2, case.turns[0].octets.hex())
    for how in ("read --ladder", "read --linked", "read -vv --bodies"):
        yield said(how, path, case.options)
    yield from written_by(path, folder, case.options)
    if HAS_PIPELINE and not case.options:
        yield FormOutput("pipeline", -1, stored(path))


def said(how: str, path: Path, options: tuple[str, ...]) -> FormOutput:
    result = CliRunner().invoke(app, [*how.split(), *options, str(path)])
    return FormOutput(how, result.exit_code, result.output + result.stderr)


@pytest.mark.parametrize("secret", [PASSWORD.encode(), TOKEN.encode(), bytes(range(200, 232))])
def test_what_is_searched_for_is_found(secret: bytes) -> None:
    """In each encoding, wherever the secret stands in what was encoded."""
    search = SecretSearch([secret])
    text = secret.decode("latin-1")
    for before in range(4):
        octets = b"abcd"[:before] + secret + b"xyz"
        for written in (
            *(octets, octets.hex(), octets.hex().upper(), octets.hex(" "), octets.hex(":"), repr(octets)),
            *(
                base64.b64encode(octets),
                base64.urlsafe_b64encode(octets),
                json.dumps(octets.decode("latin-1")),
            ),
            "".join(f"%{octet:02X}" for octet in octets),
            *(text.encode(wide) for wide in ("utf-16-le", "utf-16-be")),
            *(repr(text.encode(wide)) for wide in ("utf-16-le", "utf-16-be")),
            *(text.encode(wide).hex() for wide in ("utf-16-le", "utf-16-be")),
            quote(octets, safe=""),
        ):
            assert search.found_in(written), written
    assert not search.found_in(secret[1:] + bytes(8) + secret[:-1])


def test_all_cases_are_tried(tmp_path: Path) -> None:
    assert list(cases(tmp_path)) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_no_output_has_a_secret(tmp_path: Path, name: str) -> None:
    case = cases(tmp_path)[name]
    recording = TlsRecording.__new__(TlsRecording)
    recording.turns = case.turns
    octets = capture_of(recording).capture.pcapng()
    path, folder = tmp_path / "a.pcapng", tmp_path / "written"
    folder.mkdir()
    path.write_bytes(octets[:28] + (secrets_block(case.block) if case.block else b"") + octets[28:])
    given = dict(zip(case.options[::2], case.options[1::2], strict=True))
    keylog, pem = ([given[one]] if one in given else [] for one in ("--tls-keylog", "--tls-key"))
    frames = [one.frame.name for one in amqpscope.read(path, tls_keylog=keylog, tls_key=pem)]
    assert any("close" in one for one in frames) == case.read, frames
    secrets = search(case)
    count = 0
    for shown in outputs(path, case, folder):
        count += 1
        assert shown.status != 2 or any(one in shown.text for one in REFUSALS), shown
        assert not secrets.found_in(shown.text), (shown.how, secrets.found_in(shown.text))
    assert count > 12
