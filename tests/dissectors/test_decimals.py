"""Decimals from their bit patterns, computed by hand from IEEE 754-2008, section 3.5, the binary form."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support import amqp10_encode as amqp

from dissectors.amqp10.decimals import Decimal32, Decimal64, Decimal128, read_decimal

LARGEST_7 = "9999999"
LARGEST_16 = "9999999999999999"
LARGEST_34 = "9" * 34


@pytest.mark.parametrize(
    ("octets", "text"),
    [
        # decimal32: sign, 8 bits of exponent (bias 101), 23 of significand.
        ("32800000", "0"),
        ("b2800000", "-0"),
        ("32800001", "1"),
        ("3200000a", "1.0"),  # one fewer in the exponent; the trailing zero is kept
        ("33000001", "1E+1"),
        ("327fffff", "838860.7"),
        ("32ffffff", "8388607"),  # 2**23 - 1, the largest that stands whole
        ("00000001", "1E-101"),
        ("5f800001", "1E+90"),
        # The other form: 11, then the exponent, and 100 in front of 21 bits.
        ("6ca00000", "8388608"),  # 2**23
        ("6cb8967f", LARGEST_7),
        ("ecb8967f", "-" + LARGEST_7),
        ("77f8967f", "9.999999E+96"),
        ("6018967f", "9.999999E-95"),
        # A significand above 9999999 stands for zero, with its sign and exponent.
        ("6cb89680", "0"),
        ("ecbfffff", "-0"),
        ("6cd89680", "0E+1"),
        ("78000000", "Infinity"),
        ("f8000000", "-Infinity"),
        ("7bffffff", "Infinity"),  # whatever the bits behind it
        ("7c000000", "NaN"),
        ("fc000000", "-NaN"),
        ("7e000000", "sNaN"),
        ("fe000000", "-sNaN"),
        ("7c00002a", "NaN42"),
        ("7e00002a", "sNaN42"),
        ("7c0f423f", "NaN999999"),
        ("7c0f4240", "NaN"),  # a payload of more than six figures stands for none
        ("7df0002a", "NaN42"),  # the reserved bits in between count for nothing
        # decimal64: 10 bits of exponent (bias 398), 53 of significand.
        ("31c0000000000000", "0"),
        ("31c0000000000001", "1"),
        ("b1a000000000000f", "-1.5"),
        ("31dfffffffffffff", "9007199254740991"),  # 2**53 - 1
        ("6c70000000000000", "9007199254740992"),
        ("6c7386f26fc0ffff", LARGEST_16),
        ("6c7386f26fc10000", "0"),
        ("77fb86f26fc0ffff", "9.999999999999999E+384"),
        ("0000000000000001", "1E-398"),
        ("7800000000000000", "Infinity"),
        ("f800000000000000", "-Infinity"),
        ("7c00000000000000", "NaN"),
        ("7e0000000000007b", "sNaN123"),
        # decimal128: 14 bits of exponent (bias 6176), 113 of significand.
        ("30400000000000000000000000000000", "0"),
        ("30400000000000000000000000000001", "1"),
        ("b03e000000000000000000000000000f", "-1.5"),
        ("3041ed09bead87c0378d8e63ffffffff", LARGEST_34),
        ("3041ed09bead87c0378d8e6400000000", "0"),
        ("6c100000000000000000000000000000", "0"),  # the other form holds nothing of 34 figures
        ("00000000000000000000000000000001", "1E-6176"),
        ("5fffed09bead87c0378d8e63ffffffff", "9.999999999999999999999999999999999E+6144"),
        ("78000000000000000000000000000000", "Infinity"),
        ("fc000000000000000000000000000000", "-NaN"),
        ("7e000000000000000000000000000001", "sNaN1"),
    ],
)
def test_by_hand(octets: str, text: str) -> None:
    decoded = read_decimal(bytes.fromhex(octets))
    assert type(decoded) is {8: Decimal32, 16: Decimal64, 32: Decimal128}[len(octets)]
    assert isinstance(decoded, Decimal)
    assert decoded.as_tuple() == Decimal(text).as_tuple()
    assert str(decoded) == text


def finite(digits: int, lowest: int, highest: int) -> st.SearchStrategy[Decimal]:
    def number(sign: int, significand: int, exponent: int) -> Decimal:
        return Decimal((sign, tuple(map(int, str(significand))), exponent))

    return st.builds(number, st.integers(0, 1), st.integers(0, 10**digits - 1), st.integers(lowest, highest))


@given(finite(7, -101, 90), finite(16, -398, 369), finite(34, -6176, 6111))
def test_every_finite_number_comes_back_figure_for_figure(one: Decimal, two: Decimal, three: Decimal) -> None:
    assert read_decimal(amqp.decimal32(one)[1:]).as_tuple() == one.as_tuple()
    assert read_decimal(amqp.decimal64(two)[1:]).as_tuple() == two.as_tuple()
    assert read_decimal(amqp.decimal128(three)[1:]).as_tuple() == three.as_tuple()


@given(st.sampled_from((4, 8, 16)).flatmap(lambda size: st.binary(min_size=size, max_size=size)))
def test_any_pattern_is_a_decimal_that_can_be_compared_hashed_and_shown(octets: bytes) -> None:
    decoded = read_decimal(octets)
    assert isinstance(decoded, Decimal)
    assert isinstance(hash(decoded), int)
    assert str(decoded)
    assert (decoded == decoded) != (decoded != decoded)
    assert (decoded == decoded) is not decoded.is_nan()
    assert decoded != "text"
    assert decoded == 1 or decoded != 1


def test_a_signalling_nan_is_equal_to_nothing_and_raises_nowhere() -> None:
    signalling = Decimal32("sNaN")
    assert not any(
        signalling == other for other in (signalling, Decimal("sNaN"), Decimal(1), 1, "sNaN", None)
    )
    assert all(other != signalling for other in (Decimal(1), 1, 1.5, "sNaN", Decimal32("sNaN1")))
    assert {signalling: 1}[signalling] == 1  # the same object is found
    assert len({Decimal32("sNaN"), Decimal32("sNaN1")}) == 2
