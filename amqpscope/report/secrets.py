"""What is never shown: credentials, in no form and at no verbosity. Here: wherever they stand.

* What a login says beside mechanism names, host name and outcome code: responses are credentials or proofs
  of them; challenges and the outcome's data help to guess a password. Which fields and messages these are
  each protocol tells for itself: `amqp10.secrets`, `amqp091.secrets`.
* In any map or table (properties of a peer or link, application properties, headers, annotations, ...) the
  value of a key that names a password, secret, credential, authorization or token. Lock tokens, with which
  Service Bus settles messages, are none.
* The password in an address that is a URL with one: `amqpscope.model.passwords`.

Octets that were not distinguished (a value that does not decode, a hexdump of what is malformed) are
shown only where none of these can be among them.
"""

import re
from typing import Final

from dissectors.interface import Problem

__all__ = ["hides_octets", "is_secret_key", "problem_path", "shown_path", "size_of"]

# Of keys in lower case and without the signs between words.
_WORDS: Final = (
    "passw(?:or)?d|passphrase|passcode|pwd|secret|credential|authori[sz]ation|(?<!lock)token"
    "|sharedaccess|apikey|privatekey|bearer|jwt"
)
_WORDS_IN_OCTETS: Final = _WORDS.encode()
_BETWEEN: Final = "[-_. ]"

# Octets that are searched at a time: each search takes two copies of them, and there may be megabytes.
_PIECE: Final = 256 * 1024
_OVERLAP: Final = (
    4096  # so that a name is found where two pieces meet, also one with zeros between its letters
)

# Where a path names a map's key (an index is digits only).
_KEY_IN_PATH: Final = r"\[(?!\d+\])|\{"

_known_keys: dict[str, bool] = {}


def is_secret_key(key: object) -> bool:
    """Whether the value of this key of a map is never shown."""
    if isinstance(key, bytes):
        name = key.decode("latin-1")
    elif isinstance(key, str):
        name = key
    else:
        return False
    known = _known_keys.get(name)
    if known is None:
        known = re.search(_WORDS, re.sub(_BETWEEN, "", name.lower())) is not None
        if len(_known_keys) > 4096:
            # The same few keys come with every message; thousands of others are somebody's data.
            _known_keys.clear()
        _known_keys[name] = known
    return known


def hides_octets(octets: bytes) -> bool:
    """Whether octets that were not distinguished seem to hold a secret: the name of one stands in them."""
    if len(octets) <= _PIECE:
        return _names_secret(octets)
    for start in range(0, len(octets), _PIECE):
        if _names_secret(octets[max(start - _OVERLAP, 0) : start + _PIECE]):
            return True
    return False


def _names_secret(octets: bytes) -> bool:
    return re.search(_WORDS_IN_OCTETS, octets.lower().translate(None, b"-_. \0")) is not None


def size_of(value: object) -> int:
    """Octets of a secret, as far as that can be determined; 0 for what is no string of some kind."""
    if isinstance(value, bytes):
        return len(value)
    return len(value.encode("utf-8", "surrogatepass")) if isinstance(value, str) else 0


def problem_path(problem: Problem, guarded: bool) -> str:
    """Where a problem lies, without keys of maps where these may be part of a secret."""
    return shown_path(problem.path, guarded)


def shown_path(path: str, guarded: bool) -> str:
    """The path of a value, cut at the first map if its keys may be part of a secret."""
    key = re.search(_KEY_IN_PATH, path)
    if key is None or (not guarded and not is_secret_key(path)):
        return path
    return path[: key.start()] + "[…]"
