"""Who is the client: each kind of evidence, and that the stronger one wins."""

import pytest

from amqpscope.reassembly.client import client_direction


@pytest.mark.parametrize(
    ("opener", "hint", "port_0", "port_1", "client"),
    [
        (1, 0, 51000, 5672, 1),  # SYN beats the protocol and the ports
        (0, 1, 5672, 51000, 0),
        (-1, 1, 51000, 5672, 1),  # the protocol beats the ports
        (-1, 0, 5672, 51000, 0),
        (-1, -1, 51000, 5672, 0),  # a registered port is the server's, also when it is not the lower
        (-1, -1, 5672, 51000, 1),
        (-1, -1, 5671, 1024, 1),
        (-1, -1, 1024, 5671, 0),
        (-1, -1, 15672, 40000, 1),  # neither: the lower is the server's
        (-1, -1, 40000, 15672, 0),
        (-1, -1, 5671, 5672, 1),  # both: the lower as well
        (-1, -1, 5672, 5672, 0),  # nothing to tell them apart: who was captured first
    ],
)
def test_client_direction(opener: int, hint: int, port_0: int, port_1: int, client: int) -> None:
    assert client_direction(opener, hint, port_0, port_1) == client
