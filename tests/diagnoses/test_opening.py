"""How long frames are about the opening of a connection."""

from __future__ import annotations

from io import BytesIO

from support.diagnosed import diagnosed
from support.dialogue import RECEIVER, SENDER, Dialogue

from amqpscope.diagnoses.capture import CaptureDiagnoses
from amqpscope.input.capture import Capture


def codes(d: Dialogue) -> list[str]:
    return [one.code.removeprefix("diag/") for one in diagnosed(d.pcap())]


def while_opening(d: Dialogue) -> list[str]:
    """The frames that are taken before the opening is over."""
    diagnoses = CaptureDiagnoses({})
    names: list[str] = []
    with Capture(BytesIO(d.pcap()), name="dialogue") as capture:
        for record in capture:
            watch = diagnoses.watch(record.connection)
            watch.add(record)
            if not watch.opening.answered:
                names.append(f"{record.peer} {record.frame.name}")
    return names


def test_the_opening_is_over_when_the_server_opens_and_the_client_has_gone_on() -> None:
    d = Dialogue()
    d.opened()
    d.client.begin()
    d.server.begin()
    assert while_opening(d) == ["client header", "server header", "client open"]


def test_the_opening_is_over_with_the_begin_of_a_server_that_opens_first() -> None:
    d = Dialogue()
    d.client.header()
    d.server.header()
    d.server.open()
    d.client.open()
    d.client.begin()
    d.server.begin()
    d.client.attach(SENDER)
    d.server.attach(RECEIVER)
    assert [name.split()[1] for name in while_opening(d)] == ["header", "header", "open", "open", "begin"]


def test_a_client_that_goes_on_behind_the_open_of_the_server_speaks_its_version() -> None:
    d = Dialogue()
    d.client.header()
    d.server.header(3)
    d.server.open()
    d.client.open()
    d.tcp.goodbye()
    assert "version-mismatch" not in codes(d)


def test_the_login_of_a_client_that_waits_for_nothing_may_be_refused() -> None:
    d = Dialogue()
    d.client.header(3)
    d.client.init()
    d.client.header()
    d.client.open()
    d.client.begin()
    d.server.header(3)
    d.server.mechanisms("PLAIN")
    d.server.outcome(1)
    d.tcp.goodbye()
    assert codes(d) == ["login-refused"]
