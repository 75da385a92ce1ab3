"""Problems of AMQP 1.0 that others ask for by name."""

from typing import Final

__all__ = ["NO_HEADER"]

NO_HEADER: Final = "C-HDR-FORM"
"""The code of the problem that a stream begins with neither a protocol header nor a frame."""
