"""No form of an AMQP 0-9-1 frame shows a credential, however the frame is broken: text, octets, or JSON.

The marker stands where a secret does; then the frame is cut, its numbers and lengths are changed, or it is
sent where it does not belong.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from support import amqp091_encode as amqp
from support.rendered import as_json, lines, records
from support.sampling import share
from support.secret_canary import GIVEN_AWAY, MARKER

SECRET = MARKER.encode()
PRODUCT = {"product": "pika", "capabilities": {"basic.nack": True}}

SECRETIVE = {
    "start-ok": amqp.method(
        "connection.start-ok",
        client_properties=PRODUCT,
        mechanism="PLAIN",
        response=b"\0guest\0" + SECRET,
        locale="en_US",
    ),
    "start-ok-amqplain": amqp.method(
        "connection.start-ok",
        client_properties={},
        mechanism="AMQPLAIN",
        response=amqp.table({"LOGIN": "guest", "PASSWORD": MARKER})[4:],
        locale="en_US",
    ),
    "secure": amqp.method("connection.secure", challenge=b"realm=" + SECRET),
    "secure-ok": amqp.method("connection.secure-ok", response=SECRET),
    "update-secret": amqp.method("connection.update-secret", new_secret=SECRET, reason="expired"),
}
OPENED = amqp.say("channel.open", 1) + amqp.say("basic.qos", 1, prefetch_count=1)


def reported(octets: bytes, lost: int = 0) -> Iterator[str]:
    """Everything that any form says of octets, at the beginning of the connection or later."""
    for before in (amqp.header(), OPENED):
        for behind in (b"", amqp.heartbeat() + OPENED):
            for found in (
                records(before + octets + behind, lost=lost),
                records(b"", before + octets + behind),
            ):
                for verbosity in range(3):
                    yield from lines(found, verbosity)
                yield from as_json(found, bodies=True)


def check(octets: bytes, lost: int = 0) -> None:
    for line in reported(octets, lost):
        assert not GIVEN_AWAY.search(line), line


@pytest.mark.parametrize("name", SECRETIVE)
def test_as_it_should_be(name: str) -> None:
    check(amqp.frame(amqp.METHOD, 0, SECRETIVE[name]))
    shown = "\n".join(reported(amqp.frame(amqp.METHOD, 0, SECRETIVE[name])))
    assert "(hidden, " in shown
    assert '{"hidden": ' in shown


def test_the_rest_of_a_login_is_reported() -> None:
    found = records(amqp.header() + amqp.frame(amqp.METHOD, 0, SECRETIVE["start-ok"]))
    assert lines(found)[-1] == "connection.start-ok (pika) PLAIN response=(hidden, 19 octets)"
    assert '"mechanism": "PLAIN", "response": {"hidden": 19}, "locale": "en_US"' in as_json(found)[-1]


@pytest.mark.parametrize("name", SECRETIVE)
def test_cut_by_its_own_size(name: str) -> None:
    payload = SECRETIVE[name]
    for size in share(range(len(payload)), 3, f"cut {name}"):
        check(amqp.frame(amqp.METHOD, 0, payload[:size]))


@pytest.mark.parametrize("name", SECRETIVE)
def test_cut_by_the_end_of_the_stream(name: str) -> None:
    octets = amqp.frame(amqp.METHOD, 0, SECRETIVE[name])
    for size in share(range(len(octets)), 3, f"ended {name}"):
        check(octets[:size])


@pytest.mark.parametrize("name", SECRETIVE)
def test_its_beginning_lost(name: str) -> None:
    octets = amqp.frame(amqp.METHOD, 0, SECRETIVE[name])
    for size in share(range(len(octets)), 3, f"begun {name}"):
        check(octets[size:])
        check(octets[size:], lost=size + 1)


@pytest.mark.parametrize("name", SECRETIVE)
def test_any_octet_before_it_wrong(name: str) -> None:
    """Type, channel, size, class, method, lengths, tags."""
    octets = amqp.frame(amqp.METHOD, 0, SECRETIVE[name])
    wrong = [
        (at, octet)
        for at in range(octets.index(SECRET))
        for octet in sorted({0, 1, 2, 3, 0xFF, octets[at] + 1 & 0xFF, octets[at] - 1 & 0xFF})
    ]
    for at, octet in share(wrong, 4, f"wrong {name}"):
        check(octets[:at] + bytes([octet]) + octets[at + 1 :])


@pytest.mark.parametrize("name", SECRETIVE)
def test_under_the_number_of_any_method(name: str) -> None:
    """Above all of those that have strings where the secret is, and of those that nobody knows."""
    numbers = [known[:2] for known in amqp.METHODS.values() if known[0] == 10]
    for class_id, method_id in [*numbers, (10, 99), (9, 9), (0, 0)]:
        payload = bytes([0, class_id, 0, method_id]) + SECRETIVE[name][4:]
        check(amqp.frame(amqp.METHOD, 0, payload))
    # Of another class it is a method like any other, once the login is over.
    for class_id, method_id, _ in amqp.METHODS.values():
        octets = amqp.frame(amqp.METHOD, 0, bytes([0, class_id, 0, method_id]) + SECRETIVE[name][4:])
        found = records(amqp.header() + octets)
        assert class_id == 10 or found[-1].frame.problems
        for line in [*lines(found, 2), *as_json(found, bodies=True)]:
            assert class_id == 10 or not GIVEN_AWAY.search(line), line


@pytest.mark.parametrize("name", SECRETIVE)
def test_in_another_frame(name: str) -> None:
    for channel in (0, 1):
        check(amqp.frame(amqp.METHOD, channel, SECRETIVE[name]))
        for end in (b"\0", b""):
            check(amqp.frame(amqp.METHOD, channel, SECRETIVE[name], end=end))
    for kind in (0, 2, 4, 5, 8, 255):
        check(amqp.frame(kind, 0, SECRETIVE[name]))


@pytest.mark.parametrize("name", SECRETIVE)
def test_octets_around_its_frame(name: str) -> None:
    check(b"garbage" + amqp.frame(amqp.METHOD, 0, SECRETIVE[name]))
    check(amqp.frame(amqp.METHOD, 0, SECRETIVE[name] + SECRET))
    check(amqp.frame(amqp.METHOD, 0, SECRETIVE[name]) * 2 + SECRET)
    check(amqp.frame(amqp.HEARTBEAT, 0, SECRET))


KEYS = ("password", "client-secret", "access_token", "Authorization", "api.key")


@pytest.mark.parametrize("key", KEYS)
def test_secret_names_in_tables(key: str) -> None:
    pairs = {key: MARKER, "nested": {key: ("x", SECRET)}, "listed": ("A", [{key: MARKER}]), "n": ("A", [])}
    octets = b"".join(
        (
            amqp.say("queue.declare", 1, arguments=pairs),
            amqp.say("connection.start-ok", 0, client_properties=pairs),
            amqp.say("basic.publish", 1),
            amqp.content(1, b"", headers=pairs),
        )
    )
    check(octets)
    # The same where something in it is malformed, so that its octets would be shown.
    broken = [*pairs.items(), ("n", None), (key, None)]
    wrong = amqp.table(broken)[4:] + b"\x01z?" + key.encode() + b"=" + SECRET
    check(amqp.frame(amqp.METHOD, 1, amqp.method("queue.declare")[:-4] + amqp.long_string(wrong)))


def test_a_method_on_channel_0_that_is_sound_but_for_that_is_reported() -> None:
    octets = amqp.say("basic.publish", 0, routing_key="q")
    assert lines(records(OPENED + octets))[-2] == 'basic.publish  exchange="" routing-key=q'
    assert lines(records(amqp.header() + octets))[-2] == "basic.publish  18 octets"


def test_what_is_malformed_on_a_channel_is_reported_whatever_was_before() -> None:
    """As in the frames around a finding, where nothing is known of the login."""
    octets = amqp.frame(amqp.METHOD, 1, amqp.method("basic.publish", routing_key="q") + b"?")
    assert lines(records(octets))[1] == 'basic.publish  exchange="" routing-key=q'
    header = amqp.frame(amqp.HEADER, 1, amqp.content_header(5, weight=1))
    assert lines(records(header))[1] == "content-header body-size=5 weight=1"
    assert lines(records(amqp.frame(amqp.METHOD, 1, b"\0\x63\0\x05abc")))[1] == "undecodable    15 octets"


def test_passwords_in_urls() -> None:
    url = f"amqp://user:{MARKER}@host/"
    octets = b"".join(
        (
            amqp.say("queue.declare", 1, queue=url, arguments={"federation": url, url: True}),
            amqp.say("channel.close", 1, reply_code=500, reply_text=f"cannot reach {url}"),
            amqp.say("basic.publish", 1, exchange=url, routing_key=url),
            amqp.content(1, b"", reply_to=url, headers={"a": url}),
        )
    )
    check(octets)
    assert any("amqp://user:(hidden)@host/" in line for line in reported(octets))


def test_bodies_are_shown_only_when_asked_for() -> None:
    octets = OPENED + amqp.say("basic.publish", 1) + amqp.content(1, SECRET * 3, frame_max=20)
    found = records(octets + amqp.frame(amqp.BODY, 1, SECRET, end=b"\0"))
    for verbosity in (0, 1):
        assert not any(GIVEN_AWAY.search(line) for line in lines(found, verbosity))
    assert not any(GIVEN_AWAY.search(line) for line in as_json(found))
    assert any(GIVEN_AWAY.search(line) for line in lines(found, 2))
    assert any(GIVEN_AWAY.search(line) for line in as_json(found, bodies=True))
