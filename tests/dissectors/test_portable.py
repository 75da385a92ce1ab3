"""Values that went through plain ones are the same, and secrets do not come along."""

from __future__ import annotations

import marshal

import pytest
from hypothesis import given, settings
from support import amqp10_encode as amqp
from support.decoded import meaning, read_value
from support.sampling import examples
from support.strategies import Sample, performatives, sasl_bodies, values

from dissectors.amqp10.composite import Composite, Reader
from dissectors.amqp10.frame import ProtocolHeader
from dissectors.amqp10.portable import dump_value, load_value
from dissectors.amqp10.registry import FINAL
from dissectors.amqp10.sasl import SaslInit
from dissectors.amqp10.values import Described, Raw


def read(octets: bytes) -> object:
    return Reader(octets, 0, len(octets), 0, FINAL).value()


def carried(value: object) -> object:
    return load_value(marshal.loads(marshal.dumps(dump_value(value))))


@given(values())
def test_any_value(sample: Sample) -> None:
    value, _ = read_value(bytes(sample.octets))
    assert meaning(carried(value)) == meaning(value)


@given(performatives())
@settings(max_examples=examples(50))
def test_any_performative(sample: Sample) -> None:
    body = read(bytes(sample.octets))
    assert isinstance(body, Composite)
    assert meaning(carried(body)) == meaning(body)


@given(sasl_bodies())
@settings(max_examples=examples(50))
def test_of_a_secret_only_that_it_was_there(sample: Sample) -> None:
    body = read(bytes(sample.octets))
    assert isinstance(body, Composite)
    loaded = carried(body)
    assert isinstance(loaded, Composite)
    for field, before, after in zip(body.definition().fields, body.values(), loaded.values(), strict=True):
        expected = b"" if field.secret and before is not None else before
        assert after == expected, field.name


def test_secret_octets_are_not_in_the_state() -> None:
    octets = amqp.sasl_init(mechanism="PLAIN", initial_response=b"\0user\0password")
    body = read(octets)
    assert isinstance(body, SaslInit) and body.initial_response == b"\0user\0password"
    assert b"password" not in marshal.dumps(dump_value(body))


def test_what_was_sent_instead_of_a_field_and_beyond_the_last() -> None:
    body = read(b"\x00\x53\x17\xc0\x08\x03\x43\x43\xa1\x03abc")  # end: uint0 for error, and two more
    assert isinstance(body, Composite) and body.odd and body.extra
    assert carried(body) == body


def test_a_protocol_header_and_undecoded_octets() -> None:
    header = carried(ProtocolHeader(3, 1, 0, 0))
    assert isinstance(header, ProtocolHeader) and header.protocol() == "SASL"
    assert carried(Described(Raw(b"\xff"), Raw(b"abc"))) == Described(Raw(b"\xff"), Raw(b"abc"))


def test_what_is_no_value_is_refused() -> None:
    with pytest.raises(TypeError, match="object"):
        dump_value(object())
    with pytest.raises(ValueError, match="nothing"):
        load_value(("nothing",))
    with pytest.raises(ValueError, match="0x7fff"):
        load_value(("composite", 0x7FFF, (), None, None, 0))
