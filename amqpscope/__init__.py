"""amqpscope: what AMQP peers said to each other, from captured traffic.

    import amqpscope

    for record in amqpscope.read("traffic.pcap"):
        print(record.packet, record.peer, record.frame.name, record.frame.body)
"""

from amqpscope.errors import AmqpscopeError, CaptureError
from amqpscope.reading import Capture, read

__all__ = ["AmqpscopeError", "Capture", "CaptureError", "read"]

__version__ = "0.1.0"
