"""What peers make up anew for every run, in names: UUIDs, counters, random tokens, the ports of addresses.

Two runs of one program differ in these and mean the same. `mask_numbers` is for names that are nothing but
labels (of links, of containers), and for the fingerprints of findings, which rest on it: any number goes.
`normalize_address` is for names that say where messages go: `orders-1` and `orders-2` are two queues.
"""

import re
from itertools import pairwise

__all__ = ["SIGN", "mask_numbers", "normalize_address"]

SIGN = "#"
"""What stands where something made up stood."""

_UUID = r"[0-9a-fA-F]{8}(?:-?[0-9a-fA-F]{4}){3}-?[0-9a-fA-F]{12}"

_MADE_UP = re.compile(f"{_UUID}|[0-9]+")

# Of numbers those that are no numbering by hand: ids of processes, times.
_LONG = re.compile(f"{_UUID}|(?<![0-9a-fA-F])[0-9a-fA-F]{{16,}}(?![0-9a-fA-F])|[0-9]{{4,}}")

# What RabbitMQ calls what it names itself.
_BROKERS = re.compile(r"\bamq\.(gen|ctag|rabbitmq\.reply-to)[-.].*", re.DOTALL)

_AUTHORITY = re.compile(r"://[^/?]*")

_ADDRESS = re.compile(r"\b[0-9]{1,3}(?:\.[0-9]{1,3}){3}\b(?::[0-9]+)?|\[[0-9a-fA-F:.]+\](?::[0-9]+)?")

_TOKEN = re.compile(r"[A-Za-z0-9_+-]{16,}={0,2}")

_KINDS = str.maketrans(
    {
        **{chr(code): "a" for code in range(ord("a"), ord("z") + 1)},
        **{chr(code): "A" for code in range(ord("A"), ord("Z") + 1)},
        **{chr(code): "0" for code in range(ord("0"), ord("9") + 1)},
    }
)

_DRAWN = frozenset("aA0")

_MOST = 1000
"""Characters of a name that are looked at."""


def mask_numbers(text: str) -> str:
    """`text`, each UUID and each number in it replaced by one sign."""
    return _MADE_UP.sub(SIGN, text)


def normalize_address(text: str) -> str:
    """`text` without what nobody chose: UUIDs, long numbers, random tokens, the host and port in a URL."""
    if len(text) > _MOST:
        return normalize_address(text[:_MOST]) + text[_MOST:]
    text = _BROKERS.sub(r"amq.\1-" + SIGN, text)
    text = _LONG.sub(SIGN, _ADDRESS.sub(SIGN, _AUTHORITY.sub("://" + SIGN, text)))
    return _TOKEN.sub(_unless_random, text)


def _unless_random(found: re.Match[str]) -> str:
    """A token of letters and digits, or a sign if it looks as if it was drawn by lot.

    Words, also several written as one, change between capitals, small letters and digits every few letters;
    what is Base64 of random octets at more than every second place.
    """
    token = found.group()
    kinds = token.translate(_KINDS)
    changes = sum(
        before != behind and before in _DRAWN and behind in _DRAWN for before, behind in pairwise(kinds)
    )
    return SIGN if changes * 5 >= len(token) * 2 and set(kinds) >= _DRAWN else token
