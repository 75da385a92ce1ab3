"""Nothing of a password or a message's body is in any table."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.all_outputs import stored
from support.lakes import CAPTURES

from amqpscope.input.capture import Capture
from dissectors.amqp091.arguments import Method
from dissectors.amqp091.message import Amqp091Message
from dissectors.amqp10.sasl import SaslInit


def secrets_of(method: Method) -> list[bytes]:
    """Passwords in a method of AMQP 0-9-1."""
    reported = {field.name: value for field, value in method.fields() if field.secret}
    response, secret = reported.get("response"), reported.get("new-secret")
    if isinstance(response, bytes):
        password = response.partition(b"PASSWORDS")[2][4:]  # of AMQPLAIN: a table, without its length
        return [password or response.rpartition(b"\0")[2]]
    return [secret] if isinstance(secret, bytes) else []


def said(path: Path) -> tuple[list[bytes], list[bytes]]:
    """SASL responses, and bodies of messages that are long enough to be reported."""
    secrets, bodies = [], []
    with Capture(str(path)) as capture:
        for record in capture:
            body = record.frame.body
            if isinstance(body, SaslInit) and body.mechanism == "PLAIN":
                secrets.append(bytes(body.initial_response or b"").rpartition(b"\0")[2])
            elif isinstance(body, Method):
                secrets += secrets_of(body)
            message = Amqp091Message.of(record.message)
            if message is not None:
                # What stands in a routing key, too, is stored with that.
                if message.body not in bytes(str(message.method), "utf-8"):
                    bodies.append(message.body)
            elif record.message is not None:
                for section in record.message.sections():
                    if section.name == "data" and isinstance(section.value, bytes) and len(section.value) > 7:
                        bodies.append(bytes(section.value))
                    elif section.name == "amqp-value" and isinstance(section.value, str):
                        bodies.append(section.value.encode())
    return secrets, [body for body in bodies if len(body) > 7]


@pytest.mark.parametrize("path", sorted(CAPTURES.glob("*.pcap")), ids=lambda path: str(path.stem))
def test_secrets_and_bodies(path: Path) -> None:
    secrets, bodies = said(path)
    text = stored(path)
    for octets in (*secrets, *bodies):
        assert octets.decode("latin-1") not in text
        assert octets.hex() not in text


def test_there_are_some() -> None:
    """What the other test looks for is there to be found."""
    found = [said(path) for path in CAPTURES.glob("*.pcap")]
    assert sum(b"made-up-for-captures" in secrets for secrets, _ in found) > 40
    assert any(b"made-up-again" in secrets for secrets, _ in found)
    assert sum(len(bodies) for _, bodies in found) > 50
