"""No command, form or verbosity shows a credential: not as text, not in hex, not in base64.

Every connection of these captures holds the marker where a secret stands, in one of the ways in which it
might slip through. A line that shows it names the connection: the number of the case in its table.
"""

from __future__ import annotations

import json
from contextlib import nullcontext
from pathlib import Path

import pytest
from support import amqp10_encode as amqp
from support.commands import amqpscope, every_way, set_against_another
from support.sampling import share
from support.secret_canary import GIVEN_AWAY, MARKER
from support.tcp_writer import Capture, Connection

from amqpscope import read


class Traffic(Capture):
    """A capture of many connections."""

    count = 0

    def another(self) -> Connection:
        """One more connection."""
        tcp = self.connection(f"10.0.0.1:{40000 + self.count}")
        self.count += 1
        tcp.handshake()
        return tcp


def opened(traffic: Traffic, sasl: bytes | None = None) -> Connection:
    """A connection up to its begins, after a SASL exchange if octets for one are given."""
    tcp = traffic.another()
    client, server = tcp.client, tcp.server
    if sasl is not None:
        client.send(amqp.SASL_HEADER)
        server.send(amqp.SASL_HEADER + amqp.sasl_frame(amqp.sasl_mechanisms(sasl_server_mechanisms="PLAIN")))
        client.send(sasl)
        server.send(amqp.sasl_frame(amqp.sasl_outcome(code=0)))
    client.send(amqp.AMQP_HEADER)
    server.send(amqp.AMQP_HEADER)
    client.send(amqp.frame(amqp.open_(container_id="c")))
    server.send(amqp.frame(amqp.open_(container_id="s")))
    client.send(amqp.frame(amqp.begin(next_outgoing_id=0, incoming_window=9, outgoing_window=9)))
    server.send(
        amqp.frame(amqp.begin(remote_channel=0, next_outgoing_id=0, incoming_window=9, outgoing_window=9))
    )
    return tcp


def attached(tcp: Connection, address: str | None = "$cbs", handle: int = 0) -> None:
    """A link from the client to an address."""
    for end, role in ((tcp.client, amqp.SENDER), (tcp.server, amqp.RECEIVER)):
        fields = {
            "name": f"link-{handle}",
            "handle": handle,
            "role": role,
            "source": amqp.source(address="me"),
            "target": amqp.target(address=address),
        }
        if role is amqp.SENDER:
            fields["initial_delivery_count"] = 0
        end.send(amqp.frame(amqp.attach(**fields)))


def closed(tcp: Connection) -> None:
    tcp.client.send(amqp.frame(amqp.close()))
    tcp.server.send(amqp.frame(amqp.close()))
    tcp.goodbye()


TOKEN = {"operation": "put-token", "type": "jwt", "name": "amqp://somewhere"}


def put_token(body: bytes, properties: bytes = b"") -> bytes:
    return properties + amqp.application_properties(TOKEN) + body


def sent(message: bytes, **fields: object) -> bytes:
    given: dict[str, object] = {"handle": 0, "delivery_id": 0, "delivery_tag": b"t", "message_format": 0}
    return amqp.frame(amqp.transfer(**(given | fields)), message)


SECRET = MARKER.encode()
LIST = amqp.list_([amqp.symbol("PLAIN"), amqp.binary(SECRET)])

# What the client says in a SASL exchange: (name, octets).
SASL = {
    "plain": amqp.sasl_frame(
        amqp.sasl_init(mechanism="PLAIN", initial_response=b"\0user\0" + SECRET, hostname="h")
    ),
    "init-symbolic": amqp.sasl_frame(
        amqp.sasl_init(mechanism="PLAIN", initial_response=SECRET, descriptor_form="symbol")
    ),
    "init-full-ulong": amqp.sasl_frame(
        amqp.sasl_init(mechanism="PLAIN", initial_response=SECRET, descriptor_form="full")
    ),
    "scram": amqp.sasl_frame(
        amqp.sasl_init(mechanism="SCRAM-SHA-256", initial_response=b"n,,n=user,r=" + SECRET)
    )
    + amqp.sasl_frame(amqp.sasl_response(response=b"c=biws,r=x,p=" + SECRET)),
    "cram": amqp.sasl_frame(amqp.sasl_init(mechanism="CRAM-MD5"))
    + amqp.sasl_frame(amqp.sasl_response(response=b"user " + SECRET)),
    "response-string": amqp.sasl_frame(amqp.sasl_response(response=amqp.string(MARKER))),
    "response-symbol": amqp.sasl_frame(amqp.sasl_response(response=amqp.symbol(MARKER))),
    "response-list": amqp.sasl_frame(amqp.sasl_response(response=amqp.list_([MARKER]))),
    "response-map-key": amqp.sasl_frame(amqp.sasl_response(response=amqp.map_({MARKER: amqp.raw(b"\x3f")}))),
    "response-described": amqp.sasl_frame(amqp.sasl_response(response=amqp.described(MARKER, MARKER))),
    "response-extra": amqp.sasl_frame(amqp.sasl_response(response=b"x", extra=[MARKER, amqp.binary(SECRET)])),
    "init-extra": amqp.sasl_frame(amqp.sasl_init(mechanism="PLAIN", initial_response=b"x", extra=[MARKER])),
    "init-shifted": amqp.sasl_frame(amqp.described(0x41, amqp.list_([amqp.binary(SECRET), MARKER]))),
    "init-mechanism-string": amqp.sasl_frame(amqp.sasl_init(mechanism=amqp.string(MARKER))),
    "init-hostname-symbol": amqp.sasl_frame(amqp.sasl_init(mechanism="PLAIN", hostname=amqp.symbol(MARKER))),
    "init-map": amqp.sasl_frame(amqp.described(0x41, amqp.map_({MARKER: amqp.binary(SECRET)}))),
    "init-string": amqp.sasl_frame(amqp.described(0x41, MARKER)),
    "init-symbolic-map": amqp.sasl_frame(amqp.described("amqp:sasl-init:map", amqp.map_({"r": MARKER}))),
    "init-size-too-large": amqp.sasl_frame(amqp.described(0x41, amqp.raw(b"\xc0\xf0\x02" + LIST[3:]))),
    "init-size-too-small": amqp.sasl_frame(amqp.described(0x41, amqp.raw(b"\xc0\x09\x02" + LIST[3:]))),
    "init-count-too-high": amqp.sasl_frame(amqp.described(0x41, amqp.raw(LIST[:2] + b"\x09" + LIST[3:]))),
    "init-binary-too-long": amqp.sasl_frame(
        amqp.sasl_init(mechanism="PLAIN", initial_response=amqp.binary(SECRET, size=99))
    ),
    "no-descriptor": amqp.sasl_frame(LIST),
    "bad-descriptor": amqp.sasl_frame(b"\x00\x3f" + LIST),
    "unknown-descriptor": amqp.sasl_frame(amqp.described(0x4F, LIST)),
    "behind-the-value": amqp.sasl_frame(amqp.sasl_init(mechanism="PLAIN"), SECRET),
    "extended-header": amqp.sasl_frame(amqp.sasl_init(mechanism="PLAIN"), extended=SECRET),
    "in-amqp-frame": amqp.frame(amqp.sasl_init(mechanism="PLAIN", initial_response=SECRET)),
    "in-amqp-frame-extra": amqp.frame(amqp.sasl_response(response=SECRET, extra=[MARKER])),
    "in-amqp-frame-map": amqp.frame(amqp.described("amqp:sasl-response:list", amqp.map_({"r": MARKER}))),
    "in-amqp-frame-full-map": amqp.frame(amqp.described(amqp.ulong(0x43, 0x80), amqp.map_({"r": MARKER}))),
    "in-amqp-frame-undescribed": amqp.frame(LIST),
    "in-amqp-frame-no-descriptor": amqp.frame(b"\x00\x3f" + LIST),
    "bad-data-offset": amqp.sasl_frame(amqp.sasl_init(mechanism="PLAIN", initial_response=SECRET), doff=200),
    "no-frame": b"\0\0\0\1" + SECRET * 3,
    "unfinished": amqp.sasl_frame(amqp.sasl_init(mechanism="PLAIN", initial_response=SECRET), size=200),
    "outcome-in-client": amqp.sasl_frame(amqp.sasl_outcome(code=0, additional_data=SECRET)),
    "challenge": amqp.sasl_frame(amqp.sasl_challenge(challenge=b"rspauth=" + SECRET)),
}


def test_sasl(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    traffic = Traffic()
    for octets in SASL.values():
        closed(opened(traffic, octets))
    check(traffic, tmp_path, capsys)


# Without a descriptor, in an AMQP frame of the AMQP layer, it is a list like any other.
NOT_SASL = ("in-amqp-frame-undescribed", "in-amqp-frame-no-descriptor")


def test_sasl_where_it_does_not_belong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In the AMQP layer."""
    traffic = Traffic()
    for name, octets in SASL.items():
        if name not in NOT_SASL:
            tcp = opened(traffic)
            tcp.client.send(octets)
            closed(tcp)
    check(traffic, tmp_path, capsys)


@pytest.mark.parametrize("snaplen", [70, 78, 80, 90, 100, 104])
def test_sasl_cut_by_the_capture(snaplen: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    traffic = Traffic(snaplen=snaplen)
    for octets in SASL.values():
        closed(opened(traffic, octets))
    check(traffic, tmp_path, capsys, found=False)


def test_sasl_after_a_lost_piece(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The capture lacks some octets of the init; the search for the next frame goes over the rest."""
    traffic = Traffic()
    octets = SASL["plain"] + SASL["scram"]
    for lost in range(1, 60):
        tcp = traffic.another()
        tcp.client.send(amqp.SASL_HEADER)
        with traffic.missed():
            tcp.client.send(octets[:lost])
        tcp.client.send(octets[lost:])
        tcp.client.send(amqp.AMQP_HEADER + amqp.frame(amqp.open_(container_id="c")))
        tcp.server.send(amqp.AMQP_HEADER + amqp.frame(amqp.open_(container_id="s")))
        closed(tcp)
    check(traffic, tmp_path, capsys)


# ---- security tokens ---------------------------------------------------------------------------------------

BODIES = {
    "value": amqp.amqp_value(MARKER),
    "data": amqp.data(SECRET),
    "sequence": amqp.amqp_sequence([MARKER]),
    "map": amqp.amqp_value(amqp.map_({MARKER: MARKER})),
    "symbol": amqp.amqp_value(amqp.symbol(MARKER)),
    "unknown-section": amqp.described(0x6F, MARKER),
    "no-section": amqp.string(MARKER),
    "cut-string": amqp.amqp_value(amqp.string(MARKER, size=200)),
    "bad-utf8": amqp.amqp_value(amqp.string(b"\xff" + SECRET)),
    "behind-garbage": b"\x3f" + SECRET,
}

PROPERTIES = amqp.properties(message_id="1", to="$cbs", reply_to="me")
PAIRS = b"".join(amqp.value(item) for pair in TOKEN.items() for item in pair)

MESSAGES = {name: put_token(body) for name, body in BODIES.items()} | {
    "properties-swallow": amqp.described(0x73, amqp.raw(b"\xc0\xff\x0f" + PROPERTIES[6:]))
    + put_token(BODIES["value"]),
    "application-properties-swallow": amqp.described(0x74, amqp.raw(b"\xc1\xff\x0a" + PAIRS))
    + BODIES["value"],
    "application-properties-value": amqp.section("application-properties", amqp.string(MARKER)),
    "application-properties-misaligned": amqp.described(
        0x74,
        amqp.map_([("x", "operation"), ("put-token", "type"), ("jwt", MARKER), (MARKER, amqp.raw(b"\x3f"))]),
    )
    + BODIES["value"],
    "header-extra": amqp.header(durable=True, extra=[MARKER]) + put_token(BODIES["value"]),
    "properties-odd": amqp.properties(subject=amqp.binary(SECRET)) + put_token(BODIES["value"]),
}


FLOW = amqp.frame(amqp.flow(incoming_window=9, next_outgoing_id=0, outgoing_window=9))


def prepared(traffic: Traffic, known: str, address: str | None = "$cbs") -> Connection:
    """A connection with a link, or of whose link the attach was lost, or of which all before was."""
    if known == "midstream":
        with traffic.missed():
            tcp = opened(traffic)
            attached(tcp, address)
    else:
        tcp = opened(traffic)
        if known == "attached":
            attached(tcp, address)
            return tcp
        with traffic.missed():
            attached(tcp, address)
    tcp.client.send(FLOW)
    tcp.server.send(FLOW)
    return tcp


@pytest.mark.parametrize("known", ["attached", "unattached", "midstream"])
def test_token(known: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Sent on a link to $cbs; on one whose attach is not there; in a capture that begins later."""
    traffic = Traffic()
    for message in MESSAGES.values():
        tcp = prepared(traffic, known)
        tcp.client.send(sent(message))
        closed(tcp)
    check(traffic, tmp_path, capsys)


def test_token_to_any_spelling_of_the_node(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    traffic = Traffic()
    for address in ("$cbs", "amqps://host/$cbs", "$CBS", "$cbs/", "/$cbs", "amqp://host:5671/$cbs/"):
        tcp = prepared(traffic, "attached", address)
        tcp.client.send(sent(amqp.properties(message_id="1") + amqp.amqp_value(MARKER)))
        closed(tcp)
    check(traffic, tmp_path, capsys)


def test_token_on_an_anonymous_link(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    traffic = Traffic()
    for message in (
        amqp.properties(to="$cbs") + amqp.amqp_value(MARKER),
        amqp.properties(subject="set-token") + amqp.amqp_value(amqp.map_({"x": MARKER})),
        put_token(amqp.data(SECRET)),
    ):
        tcp = prepared(traffic, "attached", "elsewhere")
        tcp.client.send(sent(message))
        closed(tcp)
    check(traffic, tmp_path, capsys)


@pytest.mark.parametrize("known", ["attached", "unattached", "midstream"])
def test_token_whose_beginning_is_lost(
    known: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """What said that it is a token was in a transfer that was not captured."""
    traffic = Traffic()
    for target in (None, "$cbs"):
        for body in BODIES.values():
            tcp = prepared(traffic, known, target)
            with traffic.missed():
                tcp.client.send(sent(amqp.application_properties(TOKEN), more=True))
            tcp.client.send(amqp.frame(amqp.transfer(handle=0), body))
            closed(tcp)
    check(traffic, tmp_path, capsys)


@pytest.mark.parametrize("address", ["$cbs", "elsewhere"])
def test_token_split_over_transfers(address: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """All of it captured, or all but one of the transfers."""
    message = put_token(amqp.amqp_value(f"{'a' * 90}{MARKER}{'b' * 90}{MARKER}"))
    frames = amqp.transfer_frames(message, 140, handle=0, delivery_id=0, delivery_tag=b"t")
    assert len(frames) == 3
    traffic = Traffic()
    for lost in (None, 0, 1, 2):
        tcp = prepared(traffic, "attached", address)
        for number, frame in enumerate(frames):
            with traffic.missed() if number == lost else nullcontext():
                tcp.client.send(frame)
        tcp.server.send(amqp.frame(amqp.disposition(role=True, first=0, settled=True, state=amqp.accepted())))
        closed(tcp)
    check(traffic, tmp_path, capsys)


def test_token_in_a_batch(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The batch says that it is a token, or one message in it does."""
    traffic = Traffic()
    harmless = amqp.data(amqp.amqp_value("harmless"))
    for message in (
        harmless + amqp.data(put_token(amqp.amqp_value(MARKER))),
        amqp.data(put_token(amqp.data(SECRET))) + harmless,
        amqp.application_properties(TOKEN) + harmless + amqp.data(amqp.amqp_value(MARKER)),
        amqp.properties(to="$cbs") + amqp.data(amqp.amqp_value(MARKER)) + harmless,
    ):
        tcp = prepared(traffic, "attached", "elsewhere")
        tcp.client.send(sent(message, message_format=0x80013700))
        closed(tcp)
    check(traffic, tmp_path, capsys)


TRANSFER = amqp.transfer(handle=0, delivery_id=0, delivery_tag=b"t", message_format=0)

MALFORMED = {
    # The transfer's list claims the message, or a part of it.
    "list-swallows": amqp.described(0x14, amqp.raw(b"\xc0\xff" + TRANSFER[4:])),
    "list-counts-more": amqp.described(0x14, amqp.raw(b"\xc0\x50\x0b" + TRANSFER[6:])),
    "tag-swallows": amqp.transfer(
        handle=0, delivery_id=0, delivery_tag=amqp.raw(b"\xa0\x60"), message_format=0
    ),
    "list-too-short": amqp.described(0x14, amqp.raw(b"\xc0\x03" + TRANSFER[4:])),
    "no-handle": amqp.transfer(handle=None, delivery_id=0, delivery_tag=b"t"),
    "odd-handle": amqp.transfer(handle=amqp.string(MARKER), delivery_id=0, delivery_tag=b"t"),
    "unknown-descriptor": amqp.described(0x1F, amqp.list_([amqp.uint(0)])),
    "a-list": amqp.list_([amqp.uint(0), MARKER]),
    "a-section": amqp.amqp_value(MARKER),
    "no-value": b"\x00\x3f",
    "tag": amqp.transfer(handle=0, delivery_id=0, delivery_tag=amqp.string(MARKER)),
    "state": amqp.transfer(handle=0, delivery_id=0, delivery_tag=b"t", state=amqp.string(MARKER)),
    "extra": amqp.transfer(handle=0, delivery_id=0, delivery_tag=b"t", extra=[MARKER]),
}


@pytest.mark.parametrize("known", ["attached", "unattached", "midstream"])
def test_token_in_a_malformed_transfer(
    known: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    traffic = Traffic()
    for transfer in MALFORMED.values():
        tcp = prepared(traffic, known)
        tcp.client.send(amqp.frame(transfer, put_token(amqp.amqp_value(MARKER))))
        closed(tcp)
    check(traffic, tmp_path, capsys)


# ---- keys that name a secret, and passwords in addresses ----------------------------------------------

KEYS = [
    "password",
    "PassWord",
    "db_passwd",
    "client-secret",
    "access_token",
    "x-opt-sas-token",
    "Authorization",
    "shared.access.key",
    "SharedAccessSignature",
    "api-key",
    "credentials",
    "x-jwt",
]


def fields(key: str) -> list[tuple[bytes, bytes]]:
    return [
        (amqp.symbol(key), amqp.string(MARKER)),
        (amqp.symbol("nested"), amqp.map_([(amqp.symbol(key), amqp.map_({MARKER: MARKER}))])),
        (amqp.symbol("listed"), amqp.list_([amqp.map_([(amqp.string(key), amqp.binary(SECRET))])])),
        (amqp.symbol("described"), amqp.described("x:y", amqp.map_([(amqp.binary(key.encode()), MARKER)]))),
    ]


@pytest.mark.parametrize("broken", [False, True])
def test_secret_keys(broken: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Also where something else in the frame or message is malformed, so that its octets would be shown."""
    traffic = Traffic()
    for key in KEYS:
        pairs = fields(key)
        if broken:
            pairs.append((amqp.symbol("broken"), amqp.raw(b"\xa2\x01x")))
            pairs.append((amqp.symbol(key), amqp.raw(b"\xa2\x0c" + SECRET)))
            pairs.append((amqp.symbol(f"other-{key}"), amqp.map_([(MARKER, amqp.raw(b"\xa2\x01x"))])))
            joined = key.encode() + b"=" + SECRET
            pairs.append((amqp.symbol("joined"), amqp.raw(b"\xa2" + bytes([len(joined)]) + joined)))
        tell(traffic, key, pairs)
    check(traffic, tmp_path, capsys)


def tell(traffic: Traffic, key: str, pairs: list[tuple[bytes, bytes]]) -> None:
    """A connection with these pairs wherever there may be some."""
    tcp = traffic.another()
    window = {"next_outgoing_id": 0, "incoming_window": 9, "outgoing_window": 9}
    tcp.client.send(amqp.AMQP_HEADER + amqp.frame(amqp.open_(container_id="c", properties=pairs)))
    tcp.server.send(amqp.AMQP_HEADER + amqp.frame(amqp.open_(container_id="s", properties=pairs)))
    tcp.client.send(amqp.frame(amqp.begin(**window, properties=pairs)))
    attach = amqp.attach(
        name="l",
        handle=0,
        role=amqp.SENDER,
        initial_delivery_count=0,
        properties=pairs,
        source=amqp.source(address="a", dynamic_node_properties=pairs),
        target=amqp.target(address="b"),
    )
    tcp.client.send(amqp.frame(attach))
    message = (
        amqp.delivery_annotations(pairs)
        + amqp.message_annotations(pairs)
        + amqp.application_properties([(key, MARKER), ("list", amqp.list_([amqp.map_({key: MARKER})]))])
        + amqp.amqp_value(amqp.map_({key: MARKER}))
        + amqp.footer(pairs)
    )
    tcp.client.send(sent(message))
    error = amqp.error(condition="x:y", description="d", info=pairs)
    rejected = amqp.rejected(error=error)
    tcp.server.send(amqp.frame(amqp.disposition(role=True, first=0, settled=True, state=rejected)))
    tcp.client.send(amqp.frame(amqp.close(error=error)))
    tcp.goodbye()


@pytest.mark.parametrize(
    "key", ["x-opt-lock-token", "lock-token", "x-opt-locked-until", "product", "passage"]
)
def test_keys_that_tell_nothing(key: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    traffic = Traffic()
    tcp = prepared(traffic, "attached", "elsewhere")
    tcp.client.send(sent(amqp.message_annotations({key: MARKER}) + amqp.amqp_value("x")))
    closed(tcp)
    path = traffic.write(tmp_path / "c.pcapng")
    assert MARKER in amqpscope(capsys, "read", "-v", path).out
    assert MARKER in amqpscope(capsys, "read", "--format", "ndjson", path).out


def test_passwords_in_addresses(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    url = f"amqps://user:{MARKER}@host:5671/queue"
    traffic = Traffic()
    tcp = prepared(traffic, "attached", url)
    tcp.client.send(sent(amqp.properties(to=url, reply_to=url, subject=url) + amqp.amqp_value(url)))
    tcp.client.send(amqp.frame(amqp.detach(handle=0, error=amqp.error(condition="x:y", description=url))))
    closed(tcp)
    path = check(traffic, tmp_path, capsys)
    assert "amqps://user:(hidden)@host:5671/queue" in amqpscope(capsys, "read", "-v", path).out


def test_passwords_in_names_of_links(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Some clients name a link by a URL; a finding, and an error on the link, say the name."""
    url = f"amqps://user:{MARKER}@host:5671/queue"
    traffic = Traffic()
    tcp = opened(traffic)
    fields = {
        "name": url,
        "handle": 0,
        "source": amqp.source(address="me"),
        "target": amqp.target(address=url),
    }
    tcp.client.send(amqp.frame(amqp.attach(role=amqp.SENDER, initial_delivery_count=0, **fields)))
    tcp.server.send(amqp.frame(amqp.attach(role=amqp.RECEIVER, **fields)))
    tcp.client.send(sent(amqp.amqp_value("without credit")))
    tcp.client.send(amqp.frame(amqp.detach(handle=0, error=amqp.error(condition="x:y", description=url))))
    closed(tcp)
    path = str(traffic.write(tmp_path / "c.pcapng"))
    for command in ("check", "summary"):
        for form in ("text", "json"):
            written = amqpscope(capsys, command, "--format", form, path).out
            assert "://user:(hidden)@host" in written
            assert not GIVEN_AWAY.search(written)
    baseline = tmp_path / "baseline.json"
    other = str(Path(__file__).parents[2] / "captures" / "demo.pcap")
    packet = json.loads(amqpscope(capsys, "check", "--format", "ndjson", path).lines[0])["packet"]
    for command in (
        *(["check", "--format", form] for form in ("sarif", "junit", "markdown", "github", "ndjson")),
        ["check", "--write-baseline", str(baseline)],
        ["check", "--baseline", str(baseline), "--format", "json"],
        ["diff", path],
        ["diff", other],
        ["why", "--end"],
    ):
        written = amqpscope(capsys, *command, path)
        assert not GIVEN_AWAY.search(written.out + written.err), command
    for form in ("text", "json"):
        assert not GIVEN_AWAY.search(amqpscope(capsys, "why", "--format", form, path, packet).out)
    assert "L-CREDIT" in baseline.read_text() and not GIVEN_AWAY.search(baseline.read_text())


def test_bodies_are_shown_only_when_asked_for(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    traffic = Traffic()
    tcp = prepared(traffic, "attached", "elsewhere")
    tcp.client.send(sent(amqp.amqp_value(MARKER)))
    closed(tcp)
    path = traffic.write(tmp_path / "c.pcapng")
    ways = [*every_way(path), *set_against_another(path)]
    asked = [arguments for arguments in ways if MARKER in amqpscope(capsys, *arguments).out]
    assert all("-vv" in arguments or "--bodies" in arguments for arguments in asked)
    assert len(asked) == 6


def asked_why(path: Path) -> list[list[str]]:
    """`why`, in both forms, of the first packets that hold the marker, and of one behind each."""
    holding = [record.packet for record in read(path) if GIVEN_AWAY.search(str(record.frame.raw))]
    packets = {packet + more for packet in holding[:: max(len(holding) // 3, 1)] for more in (0, 1)}
    return [
        ["why", *form, str(path), str(packet)]
        for packet in sorted(packets)
        for form in ((), ("--format", "json"))
    ]


def check(traffic: Traffic, tmp_path: Path, capsys: pytest.CaptureFixture[str], found: bool = True) -> Path:
    """Nothing that any command writes holds the marker; found: it is in the capture.

    Each capture is shown in all detail and in a share of the other ways: together in all of them.
    """
    path = traffic.write(tmp_path / "c.pcapng")
    octets = path.read_bytes()
    if found:
        assert SECRET in octets
    seed = octets.hex()
    ways = share([*every_way(path), *set_against_another(path)], 3, seed)
    for arguments in (["read", "-vv", str(path)], *ways, *share(asked_why(path), 4, seed)):
        result = amqpscope(capsys, *arguments)
        assert result.status == ("diff" in arguments)
        written = result.out + result.err
        if GIVEN_AWAY.search(written):
            shown = [line for line in written.splitlines() if GIVEN_AWAY.search(line)]
            pytest.fail(f"{arguments}: {shown[0][:2000]}")
    for suffix in share(["html", "svg", "md", "txt"], 3, seed):
        picture = tmp_path / f"picture.{suffix}"
        assert amqpscope(capsys, "draw", path, "-o", picture).status == 0
        assert not GIVEN_AWAY.search(picture.read_text("utf-8")), suffix
    return path
