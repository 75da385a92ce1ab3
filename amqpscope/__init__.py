"""amqpscope: what AMQP peers said to each other, from captured traffic.

`read(path)` gives the frames of a capture one by one; `Capture` also its connections and notes.
"""

from amqpscope.errors import AmqpscopeError, CaptureError
from amqpscope.reading import Capture, read

__all__ = ["AmqpscopeError", "Capture", "CaptureError", "read"]

__version__ = "0.1.0"
