"""Digests of messages of the draft: equal for equal values, and the same after a move to another process."""

from __future__ import annotations

import io

import pytest
from support import draft2011_encode as draft
from support.dialogue_draft2011 import Dialogue2011
from support.draft2011_encode import Section

import amqpscope
from amqpscope.model.records import FrameRecord
from amqpscope.tracking.amqp10.message_digest import MessageDigest
from amqpscope.tracking.amqp10_draft2011.passing import draft_digest, header_of
from dissectors.amqp10_draft2011.message import DraftMessage

PROPERTIES = draft.properties(message_id=b"m", subject="a")
WIDE = draft.section(
    "properties", draft.composite("properties", choice="widest", message_id=b"m", subject="a")
)
BODY = [draft.data(b"ab"), draft.amqp_data("one", "two"), draft.amqp_map([("a", "1"), ("b", "2")])]


def digest(*sections: Section) -> MessageDigest | None:
    """The digest of a message that a client sends."""
    d = Dialogue2011()
    d.linked()
    d.client.transfer(list(sections))
    d.goodbye()
    records: list[FrameRecord] = list(amqpscope.read(io.BytesIO(d.pcap())))
    [record] = [one for one in records if one.message is not None]
    message = DraftMessage.of(record.message)
    assert message is not None
    return draft_digest(record, message, "q")


def content(*sections: Section) -> object:
    passed = digest(*sections)
    assert passed is not None
    return passed.message_id, passed.sections, passed.sums


@pytest.mark.parametrize(
    "sections",
    [
        [draft.header(durable=True), PROPERTIES, *BODY, draft.footer()],
        [PROPERTIES, draft.data(b"a"), draft.data(b"b"), *BODY[1:]],
        [PROPERTIES, BODY[0], draft.amqp_data("one"), draft.amqp_data("two"), BODY[2]],
        [PROPERTIES, *BODY[:2], draft.amqp_map([("b", "2"), ("a", "1")])],
        [WIDE, *BODY],
    ],
    ids=[
        "with header and footer",
        "data divided",
        "values divided",
        "other order of a map",
        "other encoding",
    ],
)
def test_the_same_message_in_another_form(sections: list[Section]) -> None:
    assert content(*sections) == content(PROPERTIES, *BODY)


@pytest.mark.parametrize(
    "sections",
    [
        [draft.properties(message_id=b"m", subject="b"), *BODY],
        [PROPERTIES, *BODY[:2]],
        [PROPERTIES, draft.amqp_data("one", "two"), draft.data(b"ab"), BODY[2]],
        [PROPERTIES, *BODY[:2], draft.amqp_map([("a", "1"), ("b", "3")])],
    ],
    ids=["properties", "a section less", "order of sections", "a value"],
)
def test_another_message(sections: list[Section]) -> None:
    assert content(*sections) != content(PROPERTIES, *BODY)


def test_a_message_without_an_id_is_not_kept() -> None:
    assert digest(draft.header(), draft.properties(subject="a"), *BODY) is None


def test_a_digest_stays_the_same_when_it_moves_to_another_process() -> None:
    passed = digest(draft.header(ttl=7, message_attrs={"x-a": "1"}), PROPERTIES, *BODY)
    assert passed is not None
    moved = MessageDigest.load(passed.dump())
    assert moved.dump() == passed.dump()
    header = header_of(moved)
    assert moved.draft
    assert header is not None
    assert header.ttl == 7
    assert len(moved.annotations) == 1
