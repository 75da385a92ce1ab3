"""Stand-ins: what takes the place of names, texts and numbers, keyed, and of the same encoded size.

Theory of operation. A text is taken apart into words. A standard word stays (`words`). Any other word is
mapped by a keyed permutation of all words with the same sequence of classes: small letters, capital letters,
digits, other characters by the size of their encoding. So two words have the same stand-in only if they are
equal, a word has the same stand-in in every place and in every capture with the same key, and nothing has to
be remembered. What stands between the words stays, because rules look at it: the `/` of an address, the `.`
of a routing key. A long word and long octets get octets that a keyed hash of the whole gives.

In a credential, an id or a body no word is a standard one (`private`). A percent-encoded character of a word
counts as the character itself and stays encoded, so that the word has one stand-in, encoded or not. Octets
that are no UTF-8 are characters of a class of their own, and their stand-ins are no UTF-8 either.

The permutation is a Feistel network over two numbers whose product is at least the number of words. It is
applied again until the result is a word.
"""

import math
import re
from functools import lru_cache
from hashlib import blake2b
from typing import Final

from amqpscope.cutting.words import PHRASES, WORDS

__all__ = ["StandIns"]

_LONGEST: Final = 24  # characters of a word, or octets, that are permuted; longer ones are hashed
_DRAWN: Final = 4  # octets of the hash for a character of a long word
_ROUNDS: Final = 8
_SMALL: Final = 256  # numbers below it stay
_CACHED: Final = 1 << 16

_LOWER: Final = (97, 26)
_UPPER: Final = (65, 26)
_DIGIT: Final = (48, 10)
_NO_UTF8: Final = (0xDC80, 0x80)  # what stands for an octet that is no UTF-8: `surrogateescape`
_ALONE: Final = (0xDCF8, 8)  # those of them that are no UTF-8 wherever they stand
_WIDE: Final = ((0x80, 0x780), (0x800, 0xD000), _NO_UTF8, (0xE000, 0x2000), (0x10000, 0x100000))

# A percent-encoded octet of which a word can be made: a letter, a digit, or one of another character.
_ENCODED: Final = "%(?:3[0-9]|[46][1-9A-Fa-f]|[57][0-9Aa]|[89A-Fa-f][0-9A-Fa-f])"
# All characters of words but the byte order mark, which rules look at.
_OTHER: Final = "[A-Za-z0-9\\u0080-\\ufefe\\uff00-\\U0010ffff]"
_WORDS: Final = (
    rf"(?P<wide>(?:{_OTHER}\0){{2,}}{_OTHER}?)|(?P<word>(?:{_OTHER}|{_ENCODED})+)|(?P<rest>%[0-9A-Fa-f]{{2}})"
)
_PART: Final = re.compile(rf"(?P<kept>{'|'.join(PHRASES)})|{_WORDS}", re.DOTALL)
_PRIVATE: Final = re.compile(_WORDS, re.DOTALL)
_CODED: Final = re.compile(rb"%([0-9A-Fa-f]{2})|(.)", re.DOTALL)


class StandIns:
    """Gives stand-ins. key: with the same key the same ones.

    counts: how many octets were replaced, by kind.
    """

    def __init__(self, key: bytes) -> None:
        self._key = blake2b(key, digest_size=32, person=b"amqpscope cut").digest()
        self.counts: dict[str, int] = {}
        self._word = lru_cache(_CACHED)(self._new_word)
        self._coded = lru_cache(_CACHED)(self._new_coded)

    def count(self, kind: str) -> None:
        """One more of a kind was replaced."""
        self.counts[kind] = self.counts.get(kind, 0) + 1

    def text(self, octets: bytes, private: bool = False) -> bytes:
        """For a text in UTF-8, or nearly, or in UTF-16. private: no word of it is a standard one."""
        text = octets.decode("utf-8", "surrogateescape")
        pattern = _PRIVATE if private else _PART
        return pattern.sub(lambda part: self._part(part, private), text).encode("utf-8", "surrogateescape")

    def binary(self, octets: bytes, private: bool = False) -> bytes:
        """For octets that may be a text."""
        return self.text(octets, private) if _is_text(octets) else self.octets(octets)

    def octets(self, octets: bytes) -> bytes:
        """For octets that are no text."""
        size = len(octets)
        if size > _LONGEST:
            return self._stream(b"octets", octets, size)
        value = int.from_bytes(octets, "big")
        text = _is_text(octets)
        while True:
            value = self._permuted(value, 1 << 8 * size, b"octets")
            found = value.to_bytes(size, "big")
            if _is_text(found) == text:
                return found

    def body(self, octets: bytes) -> bytes:
        """For the content of a message: small letters, as many as there were octets."""
        size = len(octets)
        if size == 0:
            return octets
        letters = self._stream(b"body", octets, size)
        return letters.translate(_LETTERS)

    def number(self, value: int, bits: int) -> int:
        """For a number of so many bits, unsigned. Small ones stay: they are counts, and name nobody."""
        if value < _SMALL:
            return value
        while True:
            value = self._permuted(value, 1 << bits, b"number")
            if value >= _SMALL:
                return value

    def address(self, octets: bytes) -> bytes:
        """For an IP address: a loopback address for a loopback address."""
        value = int.from_bytes(octets, "big")
        if len(octets) == 4:
            if octets[0] == 127:
                return b"\x7f" + self._permuted(value & 0xFFFFFF, 1 << 24, b"address").to_bytes(3, "big")
            while True:
                value = self._permuted(value, 1 << 32, b"address")
                if 0 < value >> 24 < 224 and value >> 24 != 127:
                    return value.to_bytes(4, "big")
        if value <= 1:
            return octets
        return b"\xfd" + self._permuted(value, 1 << 128, b"address").to_bytes(16, "big")[1:]

    def place(self, value: int, number: int) -> int:
        """For one of so many values, counted from 0."""
        return self._permuted(value, number, b"place")

    def port(self, port: int) -> int:
        """For a port."""
        return self._permuted(port, 1 << 16, b"port")

    def _part(self, part: re.Match[str], private: bool) -> str:
        """What stands for a part of a text."""
        kind = part.lastgroup
        text = part[0]
        if kind == "wide":
            letters = iter(self._word(text[::2], private))
            return "".join(one if one == "\0" else next(letters) for one in text)
        if kind != "word":
            return text
        return self._coded(text, private) if "%" in text else self._word(text, private)

    def _new_coded(self, word: str, private: bool) -> str:
        """A word of which octets are percent-encoded: the stand-in of the word itself, encoded in the same
        places.
        """
        coded = [(found[1], found[2]) for found in _CODED.finditer(word.encode("utf-8", "surrogateescape"))]
        plain = b"".join(bytes.fromhex(digits.decode()) if digits else octet for digits, octet in coded)
        found = self._word(plain.decode("utf-8", "surrogateescape"), private)
        octets = bytearray()
        for (digits, _), octet in zip(coded, found.encode("utf-8", "surrogateescape"), strict=True):
            if digits:
                octets += b"%%%02x" % octet if digits != digits.upper() else b"%%%02X" % octet
            else:
                octets.append(octet)
        return octets.decode("utf-8", "surrogateescape")

    def _new_word(self, word: str, private: bool) -> str:
        if not private and _is_standard(word):
            return word
        if len(word) > _LONGEST:
            return self._new_long_word(word)
        classes = [_class(ord(character)) for character in word]
        whole = math.prod(size for _, size in classes)
        value = 0
        for character, (first, size) in zip(word, classes, strict=True):
            value = value * size + ord(character) - first
        distinct = _is_distinct(word)
        while True:
            value = self._permuted(value, whole, b"word")
            found = _spelled(value, classes)
            # A standard word stays, so it cannot be the stand-in of another one.
            if (private or not _is_standard(found)) and (_is_distinct(found) or not distinct):
                return found

    def _new_long_word(self, word: str) -> str:
        """Each character by one of its class: a word may have megabytes, and no number is made of it."""
        drawn = self._stream(b"word", word.encode("utf-8", "surrogateescape"), _DRAWN * len(word))
        found: list[str] = []
        for at, character in enumerate(word):
            first, size = _class(ord(character))
            if (first, size) == _NO_UTF8:
                first, size = _ALONE
            found.append(chr(first + int.from_bytes(drawn[_DRAWN * at : _DRAWN * (at + 1)], "big") % size))
        return "".join(found)

    def _stream(self, purpose: bytes, octets: bytes, size: int) -> bytes:
        """So many octets that depend on all of these."""
        seed = blake2b(octets, key=self._key, person=purpose).digest()
        blocks = (size + 63) // 64
        return b"".join(blake2b(at.to_bytes(8, "big"), key=seed).digest() for at in range(blocks))[:size]

    def _permuted(self, value: int, whole: int, purpose: bytes) -> int:
        """The place of a number below `whole` in a permutation of all of these."""
        if whole < 2:
            return value
        first = math.isqrt(whole - 1) + 1
        second = (whole + first - 1) // first
        size = (whole.bit_length() + 7) // 8
        while True:
            left, right = divmod(value, second)
            low, high = first, second
            for turn in range(_ROUNDS):
                octets = (
                    turn.to_bytes(1, "big") + right.to_bytes(size, "big") + whole.to_bytes(size + 1, "big")
                )
                mixed = int.from_bytes(blake2b(octets, key=self._key, person=purpose).digest(), "big")
                left, right = right, (left + mixed) % low
                low, high = high, low
            value = left * second + right
            if value < whole:
                return value


def _is_standard(word: str) -> bool:
    return word in WORDS or word.lower() in WORDS


def _is_distinct(word: str) -> bool:
    """Whether octets of a word that are no UTF-8 do not become UTF-8 beside each other."""
    return word.encode("utf-8", "surrogateescape").decode("utf-8", "surrogateescape") == word


def _is_text(octets: bytes) -> bool:
    try:
        octets.decode()
    except UnicodeDecodeError:
        return False
    return True


def _spelled(value: int, classes: list[tuple[int, int]]) -> str:
    """The word with this number among those with the same classes."""
    found: list[str] = []
    for first, size in reversed(classes):
        value, place = divmod(value, size)
        found.append(chr(first + place))
    return "".join(reversed(found))


# Each octet as one of 26 small letters.
_LETTERS: Final = bytes(97 + octet % 26 for octet in range(256))


def _class(code: int) -> tuple[int, int]:
    """The first character of the class that a character belongs to, and how many there are."""
    if code < 0x80:
        return _LOWER if code >= 97 else _UPPER if code >= 65 else _DIGIT
    for first, size in _WIDE:
        if code < first + size:
            return (code, 1) if code < first else (first, size)
    return code, 1
