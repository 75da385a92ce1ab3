"""Every bound of the dissectors, in one place, each with its reason.

What comes off the wire may claim anything; what it may cost is decided here.
"""

from typing import Final

MAX_DEPTH: Final = 64
"""Levels of nesting of lists, maps, arrays and descriptors that are decoded. Real values stay below
ten; what lies deeper is kept as raw octets. The interpreter's stack is what a deeper one would take."""

MAX_VALUES: Final = 1_000_000
"""Values decoded of one frame or one message: Python objects are fifty times their octets."""

MAX_EMPTY_ELEMENTS: Final = 4096
"""Elements decoded of an array whose elements have no octets (null, true, uint0, ...): nothing but the
declared count would end it, and nobody reads four thousand nulls."""

MAX_KEPT_FRAME: Final = 16 * 1024 * 1024
"""Octets kept of one frame. A frame may declare 4 GiB; of a longer one the front is decoded, the rest
is counted and the frame says so. The largest frames seen from real peers are below 2 MiB."""

MAX_CREDIBLE_FRAME: Final = 64 * 1024 * 1024
"""Largest frame size that is believed while looking for a frame boundary after lost octets. It only
decides what is a candidate; a frame met in sequence may be of any size."""

MAX_WRONG_FRAME: Final = 4096
"""Size up to which a frame whose header is wrong is waited for, to see whether its size at least is
right. Frames behind it are held back that long."""

RESYNC_WINDOW: Final = 64 * 1024
"""Octets held back while a candidate boundary cannot be judged yet, because its performative is not
complete. Performatives of real peers are below 4 KiB; frames with payload need no more than those."""

GUESSED_OCTETS: Final = 1024 * 1024
"""Octets behind a boundary that was found by searching, in which what is wrong proves nothing:
the boundary may lie in the body of a message, and what is read there ends with it. Eight times the largest
frame that brokers propose."""

MAX_FRAME_CANDIDATES: Final = 1024
"""Places in a message that does not decode at which a frame is searched. A message with more places is taken
for one that holds a frame."""

RESYNC_VALUES: Final = 256
"""Values decoded to judge one candidate boundary. Keeps the search linear when an attacker fills a
stream with near-frames."""

DETECT_OCTETS: Final = 16 * 1024 * 1024
"""Octets of one direction in which a protocol is searched when its start was not captured. After
these a connection is called unknown and its later octets are not looked at. A connection caught in
the middle of a large message shows its next frame long before."""

MAX_MESSAGE: Final = 16 * 1024 * 1024
"""Octets kept of one message while its transfers are put together, and of all messages under way on
one connection. Sections beyond are reported as not kept; the transfers themselves are all decoded."""

MAX_OPEN_DELIVERIES: Final = 4096
"""Deliveries of one direction that may be incomplete at a time. More than one a link is illegal, and
links with a delivery under way are few; beyond this number the oldest is given up."""

MAX_PROBLEMS: Final = 64
"""Problems kept of one frame or message. A frame of garbage would otherwise have thousands."""

MAX_HELLO: Final = 4096
"""First octets kept of a TLS stream inside a connection. A client's hello has a few hundred, with keys that
withstand quantum computers below two thousand."""
