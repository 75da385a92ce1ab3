"""How the streams of AMQP 0-9-1 begin."""

from __future__ import annotations

from scenarios.pairs import legal, pair, reported, without
from support.dialogue091 import Dialogue091


def refused(d: Dialogue091) -> None:
    """The server answers with its own protocol header, and closes."""
    d.server.header().called("answer")
    d.server.fin()
    d.client.fin()


@pair("F-PROTO-HDR", cut=without("answer"))
def octets_that_are_no_header(d: Dialogue091) -> None:
    if d.wrong:
        d.client.say(b"HELO amqp\r\n").breaks("F-PROTO-HDR")
        refused(d)
        return
    d.opened()
    d.goodbye()


@pair("F-PROTO-HDR", cut=without("answer"))
def header_of_the_wrong_revision(d: Dialogue091) -> None:
    if d.wrong:
        d.client.header(revision=0).breaks("F-PROTO-HDR")
        refused(d)
        return
    d.opened()
    d.goodbye()


@pair("F-PROTO-HDR-ONCE")
def second_header(d: Dialogue091) -> None:
    d.client.header()
    if d.wrong:
        d.client.header().breaks("F-PROTO-HDR-ONCE")
        d.server.start()
        d.server.fin()
        return
    d.server.start()
    d.client.start_ok()
    d.server.tune()


@pair("F-PROTO-REJECT-HDR")
def refused_with_a_text(d: Dialogue091) -> None:
    d.client.header()
    if d.wrong:
        d.server.say(b"ERR protocol not enabled\r\n").breaks("F-PROTO-REJECT-HDR")
    else:
        d.server.header(0, 0, 9, 0)
    d.server.fin()
    d.client.fin()


@pair("F-PROTO-REJECT-CLOSE")
def start_behind_a_refusal(d: Dialogue091) -> None:
    d.client.header(1, 1, 0, 10)
    d.server.header()
    if d.wrong:
        d.server.start().breaks("F-PROTO-REJECT-CLOSE")
    d.server.fin()
    d.client.fin()


@legal("a client of another version is refused")
def client_of_another_version(d: Dialogue091) -> None:
    d.client.header(1, 1, 0, 10)
    refused(d)


@legal("a client that announces a version nobody knows is refused")
def client_of_an_unknown_version(d: Dialogue091) -> None:
    d.client.header(0, 1, 1, 0)
    refused(d)


@legal("a load balancer tells the broker where the client is before the client begins")
def header_of_a_load_balancer(d: Dialogue091) -> None:
    d.client.say(b"PROXY TCP4 192.0.2.1 192.0.2.2 51034 5672\r\n")
    d.opened()
    d.channel(1)
    d.goodbye()


def opened_as_0_9(d: Dialogue091) -> None:
    """A client that asks for 0-9, which RabbitMQ takes."""
    d.client.header(1, 1, 0, 9)
    d.server.start()
    d.client.start_ok()
    d.server.tune()
    d.client.tune_ok()
    d.client.open_connection(reserved_1="capabilities", reserved_2=True)
    d.server.connection_open_ok()
    d.channel(1)


@legal("a header of 0-9 that RabbitMQ takes, and what fields were there for that 0-9-1 has reserved")
def header_of_0_9(d: Dialogue091) -> None:
    opened_as_0_9(d)
    d.ask("queue.declare", queue="work", reserved_1=1, answer={"queue": "work"})
    d.client.method("basic.get", queue="work")
    d.server.method("basic.get-empty", reserved_1="cluster")
    d.goodbye()


@reported("who asks for 0-9, and speaks 0-9-1, is judged like anybody")
def judged_behind_a_header_of_0_9(d: Dialogue091) -> None:
    opened_as_0_9(d)
    d.client.method("basic.ack", delivery_tag=7).breaks("B-ACK-KNOWN")
    d.goodbye()
