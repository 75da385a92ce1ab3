"""Every method in octets written by hand from the specification, round trips, and ways to be wrong."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support import amqp091_encode as amqp
from support.decoded import problems
from support.sampling import examples

from dissectors.amqp091.arguments import ArgumentReader, Method, UnknownMethod
from dissectors.amqp091.registry import METHODS, new_method
from dissectors.amqp091.tables import FieldTable
from dissectors.amqp091.values import Raw, Table
from dissectors.wire import u16


def read(payload: bytes) -> tuple[Method, ArgumentReader]:
    """The method in a payload, read as a frame would be, seven octets behind the frame's first."""
    method = new_method(u16(payload, 0), u16(payload, 2))
    assert method is not None
    reader = ArgumentReader()
    reader.begin(b"\0" * 7 + payload, 11, 7 + len(payload), 0, method, False)
    method.decode(reader)
    return method, reader


# A method in octets by hand: numbers, arguments; what it says.
VECTORS: list[tuple[str, str]] = [
    (
        "000a 000a 00 09 00000000 00000005 504c41494e 00000005 656e5f5553",
        "connection.start(version-major=0, version-minor=9, server-properties=FieldTable(Table([])), "
        "mechanisms=b'PLAIN', locales=b'en_US')",
    ),
    (
        "000a 000b 00000004 0161 74 01 05 504c41494e 00000002 0061 05 656e5f5553",
        "connection.start-ok(client-properties=FieldTable(Table([('a', True)])), mechanism='PLAIN', "
        "response=<hidden>, locale='en_US')",
    ),
    ("000a 0014 00000001 41", "connection.secure(challenge=<hidden>)"),
    ("000a 0015 00000001 41", "connection.secure-ok(response=<hidden>)"),
    ("000a 001e 07ff 00020000 003c", "connection.tune(channel-max=2047, frame-max=131072, heartbeat=60)"),
    (
        "000a 001f ffff ffffffff 0000",
        "connection.tune-ok(channel-max=65535, frame-max=4294967295, heartbeat=0)",
    ),
    ("000a 0028 01 2f 00 01", "connection.open(virtual-host='/', reserved-1='', reserved-2=True)"),
    ("000a 0029 00", "connection.open-ok(reserved-1='')"),
    (
        "000a 0032 0140 02 6f6b 003c 0028",
        "connection.close(reply-code=320, reply-text='ok', class-id=60, method-id=40)",
    ),
    ("000a 0033", "connection.close-ok()"),
    ("000a 003c 03 6c6f77", "connection.blocked(reason='low')"),
    ("000a 003d", "connection.unblocked()"),
    ("000a 0046 00000001 61 01 62", "connection.update-secret(new-secret=<hidden>, reason='b')"),
    ("000a 0047", "connection.update-secret-ok()"),
    ("0014 000a 00", "channel.open(reserved-1='')"),
    ("0014 000b 00000000", "channel.open-ok(reserved-1=b'')"),
    ("0014 0014 00", "channel.flow(active=False)"),
    ("0014 0015 01", "channel.flow-ok(active=True)"),
    ("0014 0028 0194 00 0000 0000", "channel.close(reply-code=404, reply-text='', class-id=0, method-id=0)"),
    ("0014 0029", "channel.close-ok()"),
    (
        "001e 000a 01 2f 15",
        "access.request(realm='/', exclusive=True, passive=False, active=True, write=False, read=True)",
    ),
    ("001e 000b 0001", "access.request-ok(ticket=1)"),
    (
        "0028 000a 0000 01 78 01 74 1a 00000000",
        "exchange.declare(reserved-1=0, exchange='x', type='t', passive=False, durable=True, "
        "reserved-2=False, reserved-3=True, no-wait=True, arguments=FieldTable(Table([])))",
    ),
    ("0028 000b", "exchange.declare-ok()"),
    ("0028 0014 0000 01 78 03", "exchange.delete(reserved-1=0, exchange='x', if-unused=True, no-wait=True)"),
    ("0028 0015", "exchange.delete-ok()"),
    (
        "0028 001e 0000 01 64 01 73 01 6b 01 00000000",
        "exchange.bind(reserved-1=0, destination='d', source='s', routing-key='k', no-wait=True, "
        "arguments=FieldTable(Table([])))",
    ),
    ("0028 001f", "exchange.bind-ok()"),
    (
        "0028 0028 0000 01 64 01 73 01 6b 00 00000000",
        "exchange.unbind(reserved-1=0, destination='d', source='s', routing-key='k', no-wait=False, "
        "arguments=FieldTable(Table([])))",
    ),
    ("0028 0033", "exchange.unbind-ok()"),
    (
        "0032 000a 0000 01 71 15 00000000",
        "queue.declare(reserved-1=0, queue='q', passive=True, durable=False, exclusive=True, "
        "auto-delete=False, no-wait=True, arguments=FieldTable(Table([])))",
    ),
    (
        "0032 000b 01 71 00000005 80000000",
        "queue.declare-ok(queue='q', message-count=5, consumer-count=2147483648)",
    ),
    (
        "0032 0014 0000 01 71 01 78 01 6b 01 00000000",
        "queue.bind(reserved-1=0, queue='q', exchange='x', routing-key='k', no-wait=True, "
        "arguments=FieldTable(Table([])))",
    ),
    ("0032 0015", "queue.bind-ok()"),
    ("0032 001e 0000 01 71 00", "queue.purge(reserved-1=0, queue='q', no-wait=False)"),
    ("0032 001f 00000003", "queue.purge-ok(message-count=3)"),
    (
        "0032 0028 0000 01 71 06",
        "queue.delete(reserved-1=0, queue='q', if-unused=False, if-empty=True, no-wait=True)",
    ),
    ("0032 0029 00000003", "queue.delete-ok(message-count=3)"),
    (
        "0032 0032 0000 01 71 01 78 01 6b 00000000",
        "queue.unbind(reserved-1=0, queue='q', exchange='x', routing-key='k', "
        "arguments=FieldTable(Table([])))",
    ),
    ("0032 0033", "queue.unbind-ok()"),
    ("003c 000a 00000000 000a 01", "basic.qos(prefetch-size=0, prefetch-count=10, global=True)"),
    ("003c 000b", "basic.qos-ok()"),
    (
        "003c 0014 0000 01 71 01 63 0a 00000000",
        "basic.consume(reserved-1=0, queue='q', consumer-tag='c', no-local=False, no-ack=True, "
        "exclusive=False, no-wait=True, arguments=FieldTable(Table([])))",
    ),
    ("003c 0015 01 63", "basic.consume-ok(consumer-tag='c')"),
    ("003c 001e 01 63 01", "basic.cancel(consumer-tag='c', no-wait=True)"),
    ("003c 001f 01 63", "basic.cancel-ok(consumer-tag='c')"),
    (
        "003c 0028 0000 00 01 71 02",
        "basic.publish(reserved-1=0, exchange='', routing-key='q', mandatory=False, immediate=True)",
    ),
    (
        "003c 0032 0138 01 6e 01 78 01 6b",
        "basic.return(reply-code=312, reply-text='n', exchange='x', routing-key='k')",
    ),
    (
        "003c 003c 01 63 ffffffffffffffff 01 01 78 01 6b",
        "basic.deliver(consumer-tag='c', delivery-tag=18446744073709551615, redelivered=True, exchange='x', "
        "routing-key='k')",
    ),
    ("003c 0046 0000 01 71 01", "basic.get(reserved-1=0, queue='q', no-ack=True)"),
    (
        "003c 0047 0000000000000001 00 01 78 01 6b 00000009",
        "basic.get-ok(delivery-tag=1, redelivered=False, exchange='x', routing-key='k', message-count=9)",
    ),
    ("003c 0048 00", "basic.get-empty(reserved-1='')"),
    ("003c 0050 0000000000000007 01", "basic.ack(delivery-tag=7, multiple=True)"),
    ("003c 005a 0000000000000007 01", "basic.reject(delivery-tag=7, requeue=True)"),
    ("003c 0064 01", "basic.recover-async(requeue=True)"),
    ("003c 006e 00", "basic.recover(requeue=False)"),
    ("003c 006f", "basic.recover-ok()"),
    ("003c 0078 0000000000000007 02", "basic.nack(delivery-tag=7, multiple=False, requeue=True)"),
    ("0055 000a 01", "confirm.select(no-wait=True)"),
    ("0055 000b", "confirm.select-ok()"),
    ("005a 000a", "tx.select()"),
    ("005a 000b", "tx.select-ok()"),
    ("005a 0014", "tx.commit()"),
    ("005a 0015", "tx.commit-ok()"),
    ("005a 001e", "tx.rollback()"),
    ("005a 001f", "tx.rollback-ok()"),
]


@pytest.mark.parametrize(("octets", "wanted"), VECTORS, ids=lambda one: one[:30])
def test_every_method_by_hand(octets: str, wanted: str) -> None:
    payload = bytes.fromhex(octets)
    method, reader = read(payload)
    assert repr(method) == wanted
    assert reader.problems == []
    assert reader.pos == reader.end
    assert method.present == len(method.definition().fields) == len(method.values())


def test_no_method_is_without_a_vector() -> None:
    assert {wanted.partition("(")[0] for _, wanted in VECTORS} == {known.name for known in METHODS}
    assert len(METHODS) == 53 + 13


_VALUES: dict[str, st.SearchStrategy[Any]] = {
    "o": st.integers(0, 255),
    "h": st.integers(0, 2**16 - 1),
    "l": st.integers(0, 2**32 - 1),
    "q": st.integers(0, 2**64 - 1),
    "s": st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=60),
    "S": st.binary(max_size=60),
    "?": st.booleans(),
    "F": st.dictionaries(
        st.text("abc", max_size=4), st.one_of(st.booleans(), st.text(max_size=3)), max_size=3
    ),
}


@settings(max_examples=examples(150))
@given(st.data())
def test_what_was_written_is_read(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(sorted(amqp.METHODS)))
    form = [field.split(":") for field in amqp.METHODS[name][2].split()]
    said = {field: data.draw(_VALUES[kind]) for field, kind in form}
    method, reader = read(amqp.method(name, **said))
    assert reader.problems == []
    assert method.definition().name == name
    for field, kind in form:
        value = getattr(method, field)
        if kind == "F":
            assert isinstance(value, FieldTable)
            value = dict(value.read().pairs)
        assert value == said[field]
    assert [field.name.replace("-", "_") for field, _ in method.fields()] == [
        field.rstrip("_") for field, _ in form
    ]


@pytest.mark.parametrize("name", sorted(amqp.METHODS))
def test_cut_anywhere_it_says_so_once(name: str) -> None:
    """What is missing is absent, what was there is read, and one problem says why."""
    form = [field.split(":") for field in amqp.METHODS[name][2].split()]
    sample = {"s": "ab", "S": b"ab", "F": {"k": True}, "?": True}
    said = {field: sample.get(kind, 7) for field, kind in form}
    payload = amqp.method(name, **said)
    whole, _ = read(payload)
    for size in range(4, len(payload)):
        method, reader = read(payload[:size])
        (found,) = reader.problems
        assert found.code in ("F-METHOD-ARGS", "T-LENGTH-BOUNDS")
        assert found.path.startswith(name + ".")
        assert 11 <= found.offset <= 7 + size
        assert method.present < whole.present
        assert method.values()[: method.present] == whole.values()[: method.present]
        assert all(value in (None, -1, False) for value in method.values()[method.present :])


def test_strings_that_are_none() -> None:
    method, reader = read(amqp.method("queue.declare", queue=b"a\xffb", arguments={"k": True}))
    assert problems(reader.problems) == [("T-SHORTSTR-UTF8", 13, "queue.declare.queue")]
    assert method.queue is None  # type: ignore[attr-defined]
    assert method.odd == {1: Raw(b"a\xffb")}
    assert ("queue", Raw(b"a\xffb")) in [(field.name, value) for field, value in method.fields()]
    assert isinstance(method.values()[-1], FieldTable)


def test_a_zero_octet_in_a_string() -> None:
    method, reader = read(amqp.method("queue.declare", queue="a\0"))
    assert problems(reader.problems) == [("T-SHORTSTR-NUL", 13, "queue.declare.queue")]
    assert ("queue", Raw(b"a\0")) in [(field.name, value) for field, value in method.fields()]


def test_a_string_that_comes_again_is_read_again() -> None:
    """The reader knows the strings it read last; another one in its place is another one."""
    reader = ArgumentReader()
    for queue in ("abc", "abc", "abd", "ab", "abcd", "abc", "äbc", "", "abc"):
        payload = amqp.method("queue.purge", queue=queue)
        method = new_method(50, 30)
        assert method is not None
        reader.begin(payload, 4, len(payload), 0, method, False)
        method.decode(reader)
        assert method.queue == queue  # type: ignore[attr-defined]


def test_a_bad_table_among_the_arguments() -> None:
    payload = amqp.method("queue.declare", queue="q", arguments=[("a", True), ("k", ("S", "x"))])
    at = payload.index(b"kS")
    method, reader = read(payload[: at + 1] + b"Z" + payload[at + 2 :])
    assert problems(reader.problems) == [("T-TABLE-TAG", 7 + at + 1, "queue.declare.arguments[k]")]
    table = method.values()[-1]
    assert isinstance(table, FieldTable)
    assert table.read() == Table([("a", True), ("k", Raw(b"Z\0\0\0\x01x"))])


def test_a_length_that_only_the_table_contradicts() -> None:
    """Within the payload there would be room."""
    table = b"\x01kS\0\0\0\x05abc"
    payload = b"\0\x0a\0\x0b" + amqp.long_string(table) + b"\x05PLAIN" + bytes(4) + b"\0"
    method, reader = read(payload)
    path = "connection.start-ok.client-properties[k]"
    assert problems(reader.problems) == [("T-TABLE-LEN", 7 + 4 + 4 + 2, path)]
    assert method.values()[1] == "PLAIN"
    assert method.present == 4


def test_secrets_are_not_shown() -> None:
    payload = amqp.method("connection.start-ok", response=b"\0guest\0secret")
    method, _ = read(payload)
    assert "secret" not in repr(method)
    assert method.response == b"\0guest\0secret"  # type: ignore[attr-defined]
    assert {(known.name, field.name) for known in METHODS for field in known.fields if field.secret} == {
        ("connection.start-ok", "response"),
        ("connection.secure", "challenge"),
        ("connection.secure-ok", "response"),
        ("connection.update-secret", "new-secret"),
    }
    assert {known.name for known in METHODS if known.secret} == {
        "connection.start-ok",
        "connection.secure",
        "connection.secure-ok",
        "connection.update-secret",
    }


def test_methods_are_equal_by_what_they_say() -> None:
    first, _ = read(amqp.method("basic.ack", delivery_tag=1))
    second, _ = read(amqp.method("basic.ack", delivery_tag=1))
    assert first == second
    assert first != read(amqp.method("basic.ack", delivery_tag=2))[0]
    assert first != read(amqp.method("basic.reject", delivery_tag=1))[0]
    assert UnknownMethod(1, 2) == UnknownMethod(1, 2) != UnknownMethod(1, 3)


@settings(max_examples=examples(200))
@given(st.sampled_from(sorted(amqp.METHODS)), st.binary(max_size=60))
def test_any_octets_are_read(name: str, octets: bytes) -> None:
    class_id, method_id, _ = amqp.METHODS[name]
    payload = class_id.to_bytes(2, "big") + method_id.to_bytes(2, "big") + octets
    method, reader = read(payload)
    assert reader.pos <= reader.end
    assert repr(method)
    for found in reader.problems:
        assert 11 <= found.offset <= 7 + len(payload)
