"""Values and composites of the draft of April 2011, from octets written by hand from its text."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree
from importlib import resources

import pytest

from dissectors.amqp10.values import Described, Map, Symbol, UInt
from dissectors.amqp10_draft2011.performatives import (
    Attach,
    Begin,
    Error,
    Filter,
    Flow,
    Fragment,
    Header,
    Open,
    SaslMechanisms,
    Source,
    Transfer,
    TransferState,
)
from dissectors.amqp10_draft2011.reader import DraftField, DraftReader
from dissectors.amqp10_draft2011.registry import COMPOSITES, DRAFT, ERROR_CONDITIONS, SECTION_CODES

TABLE = resources.files("dissectors.spec").joinpath("amqp10_draft2011/draft2011.xml").read_text()


def read(octets: str) -> tuple[object, list[str]]:
    """The value that these octets (in hexadecimal) are, and the codes of the problems in it."""
    buffer = bytes.fromhex(octets.replace(" ", ""))
    reader = DraftReader(buffer, 0, len(buffer), 0, DRAFT)
    value = reader.value()
    assert reader.pos == len(buffer)
    return value, [problem.code for problem in reader.problems]


def test_every_composite_of_the_table_is_a_class() -> None:
    root = ElementTree.fromstring(TABLE)
    composites = [one for one in root.iter() if one.get("class") == "composite"]
    assert {one.attrib["name"] for one in composites} == {known.name for known in COMPOSITES}
    for one in composites:
        known = next(known for known in COMPOSITES if known.name == one.attrib["name"])
        fields = [field for field in one if field.tag.endswith("field")]
        assert [field.attrib["name"] for field in fields] == [field.name for field in known.fields]
        for element, field in zip(fields, known.fields, strict=True):
            assert isinstance(field, DraftField)
            assert field.origin == element.get("origin", "")


def test_conditions_and_sections_of_the_table() -> None:
    assert ERROR_CONDITIONS["amqp:session:window-violation"] == "session-error"
    assert "amqp:session:handle-in-use" not in ERROR_CONDITIONS
    assert (
        dict(enumerate(["header", "properties", "footer", "data", "amqp-data", "amqp-map", "amqp-list"]))
        == SECTION_CODES
    )


def test_open_has_options_first() -> None:
    value, problems = read("00 53 10 c0 0a 04 c1 01 00 a1 01 63 40 52 00")
    assert isinstance(value, Open)
    assert (value.options, value.container_id, value.hostname) == (Map([]), "c", None)
    assert value.max_frame_size == 0
    assert problems == []


def test_a_string_may_be_utf16() -> None:
    value, problems = read("00 53 10 c0 08 02 40 a2 04 d8 3d dc 30")
    assert isinstance(value, Open)
    assert value.container_id == "\U0001f430"
    assert problems == []
    assert read("a2 02 00 e4") == ("\u00e4", [])
    assert read("b2 00 00 00 02 00 e4") == ("\u00e4", [])


@pytest.mark.parametrize(
    ("octets", "code"),
    [("a2 01 00", "T-STR-UTF16"), ("a2 02 d8 3d", "T-STR-UTF16"), ("a2 02 fe ff", "T-STR-NOBOM")],
)
def test_a_string_that_is_no_utf16(octets: str, code: str) -> None:
    assert read(octets)[1] == [code]


def test_an_array_is_an_encoding_of_a_list() -> None:
    assert read("e0 04 02 52 01 02") == ([UInt(1), UInt(2)], [])
    assert read("f0 00 00 00 08 00 00 00 01 a2 02 00 41") == (["A"], [])
    assert read("e0 02 00 40") == ([], [])


def test_a_composite_may_be_an_array() -> None:
    value, problems = read("00 53 2a e0 06 02 a3 01 78 01 79")
    assert isinstance(value, Filter)
    assert (value.filter_type, value.filter) == (Symbol("x"), Symbol("y"))
    assert problems == []


@pytest.mark.parametrize("code", ["43", "44", "45"])
def test_a_format_code_of_the_final_specification_is_reported_and_read(code: str) -> None:
    value, problems = read(code)
    assert value in (0, [])
    assert problems == ["T-CODE-LATER"]


def test_fields_with_format_codes_of_the_final_specification() -> None:
    value, problems = read("00 53 13 c0 0c 0a 40 43 43 43 43 40 40 40 40 56 01")
    assert isinstance(value, Flow)
    assert (value.next_incoming_id, value.drain) == (0, True)
    assert problems == ["T-CODE-LATER"]


@pytest.mark.parametrize(
    ("octets", "expected"),
    [
        ("40", None),
        ("a3 01 61", ["a"]),
        ("00 41 c0 07 02 a3 01 61 a3 01 62", ["a", "b"]),
        ("00 41 e0 06 02 a3 01 61 01 62", ["a", "b"]),
        ("00 41 c0 01 00", []),
    ],
)
def test_several_values(octets: str, expected: list[str] | None) -> None:
    field = bytes.fromhex(octets.replace(" ", ""))
    fields = b"\x40" * 9 + field
    value, problems = read((b"\x00\x53\x28\xc0" + bytes([len(fields) + 1, 10]) + fields).hex())
    assert isinstance(value, Source)
    assert value.outcomes == expected
    assert problems == []


@pytest.mark.parametrize(
    ("octets", "code"),
    [
        ("00 41 c0 02 01 40", "T-COMP-MULT-NULL"),
        ("00 41 c0 03 01 52 01", "T-COMP-TYPE"),
        ("00 41 52 01", "T-COMP-TYPE"),
        ("c0 04 01 a3 01 61", "T-COMP-MULT-TRUE"),
        ("c0 05 02 a3 01 61 40", "T-COMP-TYPE"),
        ("e0 04 01 a3 01 61", "T-COMP-MULT-TRUE"),
    ],
)
def test_several_values_that_are_none(octets: str, code: str) -> None:
    fields = b"\x40" * 9 + bytes.fromhex(octets.replace(" ", ""))
    value, problems = read((b"\x00\x53\x28\xc0" + bytes([len(fields) + 1, 10]) + fields).hex())
    assert isinstance(value, Source)
    assert value.outcomes == (["a"] if code == "T-COMP-MULT-TRUE" else None)
    assert problems == [code]


def test_what_the_text_lost_accuses_nobody() -> None:
    # Locales were strings in February and symbols in July.
    value, problems = read("00 53 10 c0 0d 07 40 a1 01 63 40 40 40 40 a3 02 65 6e")
    assert isinstance(value, Open)
    assert value.outgoing_locales is None
    assert value.odd == {6: Symbol("en")}
    assert problems == []


@pytest.mark.parametrize("descriptor", ["53 1c", "53 99", "80 00 00 00 01 00 00 00 02", "a3 03 78 3a 79"])
def test_fragments_and_state_are_known_by_their_position(descriptor: str) -> None:
    fragment = bytes.fromhex(f"00{descriptor.replace(' ', '')}c00c064141520352005200a00178")
    state = bytes.fromhex(f"00{descriptor.replace(' ', '')}c0040240 5207".replace(" ", ""))
    if descriptor == "53 1c":
        state = bytes.fromhex("005323c00402405207")
    for several in (fragment, b"\x00\x41\xc0" + bytes([1 + 2 * len(fragment), 2]) + 2 * fragment):
        fields = (
            bytes.fromhex("405200a001745201 40".replace(" ", ""))
            + state
            + b"\x40" * 4
            + b"\x52\x00"
            + several
        )
        value, problems = read((b"\x00\x53\x14\xc0" + bytes([len(fields) + 1, 12]) + fields).hex())
        assert isinstance(value, Transfer)
        assert problems == []
        assert isinstance(value.state, TransferState)
        assert value.state.bytes_transferred == 7
        assert value.fragments
        one = value.fragments[-1]
        assert isinstance(one, Fragment)
        assert (one.first, one.last, one.section_code, one.section_number, one.payload) == (
            True,
            True,
            3,
            0,
            b"x",
        )


def test_a_vendors_outcome_in_a_state_is_no_state() -> None:
    value, _ = read("00 53 23 c0 09 03 40 40 00 53 99 c0 01 00")
    assert isinstance(value, TransferState)
    assert isinstance(value.outcome, Described)


def test_mandatory_fields() -> None:
    assert read("00 53 11 c0 01 00")[1] == ["P-BEGIN-MAND"] * 3
    assert read("00 53 14 c0 01 00")[1] == ["P-TRANSFER-MAND"] * 4
    assert read("00 53 40 c0 07 02 40 00 41 c0 01 00")[1] == ["T-COMP-MULT-MAND"]
    assert isinstance(read("00 53 1d c0 04 01 a3 01 78")[0], Error)
    assert isinstance(read("00 53 12 c0 07 04 40 a1 00 52 00 41")[0], Attach)
    assert isinstance(read("00 53 11 c0 09 05 40 40 52 00 52 01 52 01")[0], Begin)


def test_header_under_its_final_descriptor() -> None:
    for descriptor in ("20", "70"):
        value, problems = read(f"00 53 {descriptor} c0 02 01 41")
        assert isinstance(value, Header)
        assert value.durable is True
        assert problems == []


def test_mechanisms_are_read_whatever_their_type() -> None:
    for octets, expected in (("a1 01 58", ["X"]), ("a3 01 58", ["X"]), ("00 41 c0 04 01 a3 01 58", ["X"])):
        field = bytes.fromhex(octets.replace(" ", ""))
        value, problems = read((b"\x00\x53\x40\xc0" + bytes([len(field) + 2, 2, 0x40]) + field).hex())
        assert isinstance(value, SaslMechanisms)
        assert value.sasl_server_mechanisms == expected
        assert problems == []


def test_the_revision_of_february_is_named() -> None:
    linkage = "00 53 19 c0 03 02 40 40"
    value, problems = read(f"00 53 12 c0 11 06 40 a1 01 6c 52 00 41 {linkage} 40")
    assert isinstance(value, Attach)
    assert problems == ["revision"]
