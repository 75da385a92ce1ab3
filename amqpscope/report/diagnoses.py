"""Which protocols there are diagnoses of: the place where a new one is named."""

from amqpscope.analysis.connection import ConnectionAnalysis
from amqpscope.report.amqp091.diagnosis import Diagnosis091
from amqpscope.report.diagnosis import Diagnosed, Diagnosis

__all__ = ["diagnosis_of", "misdirected"]

_PLAIN_PORTS = (5672,)


def diagnosis_of(protocol: str) -> Diagnosis:
    """What watches a connection of this protocol."""
    return Diagnosis091() if protocol == "amqp091" else Diagnosis()


def misdirected(analysis: ConnectionAnalysis, name: str, answer: str) -> Diagnosed | None:
    """A client that speaks another protocol than the port it has come to.

    name: of the client's protocol. answer: of the server's, if that is known to be none of AMQP, else "".
    """
    connection = analysis.connection
    server = 1 - max(int(connection.client), 0)
    port = connection.port(server)
    if answer:
        return Diagnosed("diag/misdirected", 0, f"the client speaks {name} to a port that speaks {answer}")
    if connection.protocol.startswith("amqp"):
        return Diagnosed("diag/misdirected", 0, f"the client speaks {name} to a port that speaks AMQP")
    if port in _PLAIN_PORTS:
        return Diagnosed("diag/misdirected", 0, f"the client speaks {name} to port {port}, AMQP without TLS")
    return None
