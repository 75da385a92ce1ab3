"""amqpscope: what AMQP peers said to each other, from captured traffic, and who broke the protocol.

`read(path)` gives the frames of a capture one by one, `check(path)` what was found wrong; `Capture` also its
connections and notes.
"""

from amqpscope.errors import AmqpscopeError, CaptureError
from amqpscope.reading import Capture, check, read

__all__ = ["AmqpscopeError", "Capture", "CaptureError", "check", "read"]

__version__ = "0.1.0"
