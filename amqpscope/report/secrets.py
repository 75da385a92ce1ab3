"""What is never shown: credentials, in no form and at no verbosity.

* What a SASL exchange says beside mechanism names, host name and outcome code: responses are
  credentials or proofs of them; challenges and the outcome's data help to guess a password.
* Security tokens of claims-based security: bodies of messages to or from the node `$cbs`, and of those
  with the operation `put-token` or the subject `set-token`, wherever they are sent.
* In any map (properties of open or attach, application properties, annotations, ...) the value of a
  key that names a password, secret, credential, authorization or token. Lock tokens, with which
  Service Bus settles messages, are none.
* The password in an address that is a URL with one.

Octets that were not told apart (a value that does not decode, a hexdump of what is malformed) are
shown only where none of these can be among them.
"""

import re

from amqpscope.report.links import LinkOf, carries_tokens
from dissectors.amqp10.composite import Composite, Field
from dissectors.amqp10.message import Message
from dissectors.amqp10.messaging import Properties
from dissectors.amqp10.values import Described, Map
from dissectors.interface import Frame, Problem

__all__ = [
    "hides_body",
    "hides_field",
    "hides_octets",
    "hides_raw",
    "is_odd",
    "is_secret_key",
    "is_unclear",
    "problem_path",
    "shown_path",
    "size_of",
    "without_password",
]

# Of keys in lower case and without the signs between words.
_WORDS = (
    "passw(?:or)?d|passphrase|passcode|pwd|secret|credential|authori[sz]ation|(?<!lock)token"
    "|sharedaccess|apikey|privatekey|bearer|jwt"
)
_SECRET_KEY = re.compile(_WORDS)
_SECRET_OCTETS = re.compile(_WORDS.encode())
_BETWEEN = re.compile("[-_. ]")

# Octets that are searched at a time: each search takes two copies of them, and there may be megabytes.
_PIECE = 256 * 1024
_OVERLAP = 4096  # so that a name is found where two pieces meet, also one with zeros between its letters

_URL_PASSWORD = re.compile(r"(://[^/@:]*):[^@]*@")

# Where a path names a map's key (an index is digits only).
_KEY_IN_PATH = re.compile(r"\[(?!\d+\])|\{")

# The descriptors of SASL's types (security.xml).
_SASL_CODES = range(0x40, 0x45)
_SASL_SYMBOL = "amqp:sasl-"

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
        known = _SECRET_KEY.search(_BETWEEN.sub("", name.lower())) is not None
        if len(_known_keys) > 4096:
            # The same few keys come with every message; thousands of others are somebody's data.
            _known_keys.clear()
        _known_keys[name] = known
    return known


def hides_octets(octets: bytes) -> bool:
    """Whether octets that were not told apart seem to hold a secret: the name of one stands in them."""
    if len(octets) <= _PIECE:
        return _names_secret(octets)
    for start in range(0, len(octets), _PIECE):
        if _names_secret(octets[max(start - _OVERLAP, 0) : start + _PIECE]):
            return True
    return False


def _names_secret(octets: bytes) -> bool:
    return _SECRET_OCTETS.search(octets.lower().translate(None, b"-_. \0")) is not None


def without_password(text: str) -> str:
    """`text`, and if it is a URL with a password in it, without that."""
    if "://" in text and "@" in text:
        return _URL_PASSWORD.sub(r"\1:(hidden)@", text)
    return text


def size_of(value: object) -> int:
    """Octets of a secret, as far as that can be told; 0 for what is no string of some kind."""
    if isinstance(value, bytes):
        return len(value)
    return len(value.encode("utf-8", "surrogatepass")) if isinstance(value, str) else 0


def is_odd(composite: Composite, value: object) -> bool:
    """Whether this value, present in a field of the composite, is not of the field's type."""
    odd = composite.odd
    if odd is None:
        return False
    return any(value is other for other in odd.values())


def hides_field(composite: Composite, field: Field, value: object) -> bool:
    """Whether a field's value is never shown."""
    if not composite.definition().is_sasl_frame:
        return field.secret
    return field.secret or field.type == "binary" or is_odd(composite, value)


def hides_raw(frame: Frame) -> bool:
    """Whether a frame's octets, or what they decode to, are never shown as they are.

    What was skipped may hold a SASL frame, or its rest; and a SASL type may stand in any frame.
    """
    if frame.kind != "amqp":
        return frame.kind != "header"
    body = frame.body
    if isinstance(body, Composite):
        return body.definition().is_sasl_frame
    if isinstance(body, Described):
        descriptor = body.descriptor
        if isinstance(descriptor, int):
            return descriptor in _SASL_CODES
        return isinstance(descriptor, str) and descriptor.startswith(_SASL_SYMBOL)
    return False


def is_unclear(message: Message) -> bool:
    """Whether one section of a message may hold what belongs to another. To be asked after `sections`."""
    return not message.complete or bool(message.problems)


def hides_body(message: Message, link: LinkOf | None, doubtful: bool) -> bool:
    """Whether a message's body is never shown. doubtful: see `LinkNames.may_hold_token`."""
    if link is not None and link.tokens:
        return True
    sections = message.sections()
    if doubtful and is_unclear(message):
        # What would tell may be missing, or not be readable.
        return True
    for section in sections:
        value = section.value
        if isinstance(value, Map) and section.name == "application-properties":
            if value.get("operation") == "put-token":
                return True
        elif isinstance(value, Properties):
            to = value.to
            if value.subject == "set-token" or (isinstance(to, str) and carries_tokens(to)):
                return True
    return any(hides_body(inner, None, doubtful) for inner in message.batch())


def problem_path(problem: Problem, guarded: bool) -> str:
    """Where a problem lies, without keys of maps where these may be part of a secret."""
    return shown_path(problem.path, guarded)


def shown_path(path: str, guarded: bool) -> str:
    """The path of a value, cut at the first map if its keys may be part of a secret."""
    key = _KEY_IN_PATH.search(path)
    if key is None or (not guarded and not is_secret_key(path)):
        return path
    return path[: key.start()] + "[…]"
