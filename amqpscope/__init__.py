"""amqpscope: what AMQP peers said to each other, from captured traffic, and who broke the protocol.

`read(path)` gives the frames of a capture one by one, `check(path)` what was found wrong; `Capture` also its
connections and notes.
"""

from typing import TYPE_CHECKING

from amqpscope.errors import AmqpscopeError, CaptureError

__all__ = ["AmqpscopeError", "Capture", "CaptureError", "CaptureOptions", "check", "read"]

__version__ = "0.1.0"

# What reads captures takes a third of a second to load: it is, when somebody asks for it. pytest loads this
# package in every run, for the plugin, whether a test has to do with AMQP or not.
if TYPE_CHECKING:
    from amqpscope.input.capture import Capture, CaptureOptions, check, read
else:

    def __getattr__(name):
        if name not in ("Capture", "CaptureOptions", "check", "read"):
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from amqpscope.input import capture

        return getattr(capture, name)

    def __dir__():
        return sorted({*globals(), *__all__})
