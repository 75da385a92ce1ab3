"""TLS inside an AMQP connection: what its first record shows in clear (security.xml, "tls")."""

from amqpscope.model.certainty import POSSIBLE
from amqpscope.model.records import CLIENT
from amqpscope.rules.amqp10.case import Case
from dissectors.tls import TlsHello

__all__ = ["judge_hello"]


def role_reversed(case: Case) -> None:
    """The TCP client acts as TLS server, or the server as client.

    Why it matters: the TCP client is the TLS client; both wait for a hello, or both send one.
    Silent when: who opened the connection was not captured, or the first record was not.
    """
    me = case.me
    what = "server" if me.peer == CLIENT else "client"
    case.report("amqp10/TL-ROLE", f"the {me.peer} sends the hello of a TLS {what}")


def hello_without_server_name(case: Case) -> None:
    """A TLS client does not name the server that it wants.

    Why it matters: a server with several names cannot know which certificate to show.
    Silent when: the hello was not captured whole, or goes over several records.
    Only possible because: To an address without a name there is none to send.
    """
    case.report("amqp10/TL-SNI", "the hello of the TLS client has no server name", POSSIBLE)


def judge_hello(case: Case, body: TlsHello) -> None:
    """The rules about the first record."""
    if not case.me.whole:
        return
    if body.client != (case.me.peer == CLIENT):
        role_reversed(case)
    elif not body.names_server:
        hello_without_server_name(case)


RULES = {
    "amqp10/TL-ROLE": role_reversed,
    "amqp10/TL-SNI": hello_without_server_name,
}
