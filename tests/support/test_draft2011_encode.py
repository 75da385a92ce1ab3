"""The test encoder of the April-2011 draft against octets that were worked out by hand from its text."""

from __future__ import annotations

import pytest
import support.draft2011_encode as e
from support.amqp10_encode import CODES

FINAL_ONLY = {0x43, 0x44, 0x45, 0x56}
"""Format codes that the draft does not define."""


@pytest.mark.parametrize(
    ("octets", "expected"),
    [
        (e.boolean(True, "widest"), "41"),
        (e.uint(0), "5200"),
        (e.uint(0, "widest"), "7000000000"),
        (e.ulong(0), "5300"),
        (e.list_([]), "c00100"),
        (e.list_([None, True]), "c003024041"),
        (e.list_([e.uint(1), e.uint(2)], 0xE0), "e00402520102"),
        (e.list_([e.uint(1)], 0xF0), "f00000000600000001" + "5201"),
        (e.string("aé", 0xA2), "a204006100e9"),
        (e.string("a", 0xB2), "b2000000020061"),
        (e.multiple("symbol", ["a"]), "0041c00401a30161"),
        (e.multiple("symbol", []), "0041c00100"),
        (e.multiple("symbol", ["a", "b"], 0xE0), "0041e00c02b300000001610000000162"),
    ],
)
def test_values(octets: bytes, expected: str) -> None:
    assert octets.hex() == expected


def test_options_come_first_in_every_performative() -> None:
    assert e.open_(container_id="c").hex() == "005310c0050240a10163"
    for name in ("open", "begin", "attach", "flow", "transfer", "disposition", "detach", "end", "close"):
        assert e.COMPOSITES[name][1][0] == ("options", "fields")
        assert e.composite(name, options={"x-a": True})[3:].hex().endswith("c10702a303782d6141")


def test_flow_of_section_3_7_4() -> None:
    flow = e.flow(incoming_window=1, next_outgoing_id=0, outgoing_window=2, handle=0, echo=True)
    assert flow.hex() == "005313c0100b" + "40" + "40" + "5201" + "5200" + "5202" + "5200" + "40" * 4 + "41"


def test_a_transfer_carries_its_fragments_in_its_last_field() -> None:
    [fragment] = e.fragments([e.data(b"hi")])
    assert fragment.hex() == "00531cc00d06" + "4141" + "5203" + "5200" + "5300" + "a0026869"
    transfer = e.transfer(handle=0, delivery_tag=b"t", transfer_id=1, message_format=0, fragments=fragment)
    assert transfer[6:].hex() == "40" + "5200" + "a00174" + "5201" + "40" * 6 + "5200" + fragment.hex()
    several = e.transfer(handle=0, fragments=e.fragments([e.header(), e.data(b"hi")]))
    assert fragment.replace(bytes.fromhex("52005300"), bytes.fromhex("52015300")) in several
    assert "0041c0" in several.hex()


def test_an_empty_section_is_one_fragment() -> None:
    [fragment] = e.fragment_fields([e.section("header")])
    assert (fragment["first"], fragment["last"], fragment["payload"]) == (True, True, b"")


def test_frames_of_a_message_that_is_larger_than_one() -> None:
    sections = [e.header(durable=True), e.data(b"a" * 9000), e.section("footer")]
    frames = e.transfer_frames(sections, 4096, handle=0, delivery_tag=b"t", transfer_id=0xFFFFFFFF)
    assert len(frames) == 3
    assert all(3000 < len(frame) <= 4096 for frame in frames[:2])
    assert b"".join(frames).count(b"a") >= 9000
    whole = e.transfer_frames(sections, 65536, handle=0, delivery_tag=b"t", transfer_id=0)
    assert whole == [
        e.frame(
            e.transfer(
                handle=0, delivery_tag=b"t", transfer_id=0, message_format=0, fragments=e.fragments(sections)
            )
        )
    ]


def test_nothing_has_a_format_code_of_the_final_only() -> None:
    assert not FINAL_ONLY & {code for codes in e.CODES.values() for code in codes}
    assert set(e.CODES) == set(CODES) - {"array"}
    for kind, codes in e.CODES.items():
        if kind in ("uint", "ulong"):
            assert {e.encode(kind, 0, choice)[0] for choice in ("smallest", "widest")} == set(codes)
