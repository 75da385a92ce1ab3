"""How far the doubt reaches when a frame could not be read as a whole: see `tracking.knowledge`.

A field that could not be read leaves unknown what it sets: the credit of a link is no other one's, a
session has ids and windows of its own. Which fields these are, the paths of the frame's problems tell.

    ALL       the frame does not decode; it may have begun a session, or attached a control link
    SESSION   ids, windows, which deliveries there are and which of them are settled; which link a handle is
    LINKS     what LINK is, of any link of the session
    LINK      credit, what is unsettled, how the link was attached or detached
    NOTHING   what is only kept as it was said: None stands there, and rules ask whether it was read

Sources: transport.xml, "performatives".
"""

from typing import Final
from zlib import crc32

from dissectors.amqp10.composite import NOT_BROKEN, Composite
from dissectors.amqp10.frame import TRAILING
from dissectors.amqp10.performatives import (
    Attach,
    Begin,
    Detach,
    Disposition,
    End,
    Flow,
    Open,
    Transfer,
)
from dissectors.amqp10.transactions import Coordinator
from dissectors.amqp10.values import Raw
from dissectors.interface import Frame
from dissectors.wire import i64

__all__ = ["ALL", "LINK", "LINKS", "NOTHING", "SESSION", "doubted", "name_of", "obscure"]

NOTHING: Final = 0
LINK: Final = 1
LINKS: Final = 2
SESSION: Final = 3
ALL: Final = 4

# The fields by which a frame is found its place, or which more depends on than the link.
_ATTACHES: Final = ("name", "handle", "role")
_OF_THE_SESSION: Final = (
    "next-incoming-id",
    "incoming-window",
    "next-outgoing-id",
    "outgoing-window",
    "handle",
)


# Which layer a kind of frame belongs to.
_LAYERS: Final = {"sasl": "SASL", "amqp": "AMQP 1.0"}


def obscure(frame: Frame) -> bool:
    """Whether not all is known of what a frame says: something in it could not be read."""
    if frame.name == "undecodable":
        return True
    return any(problem.unread for problem in frame.problems)


def name_of(attach: Attach) -> str | None:
    """The name by which a link is known; None if its attach has none.

    Of a name that cannot be read the octets tell it from others: both ends may send the same ones. A byte
    order mark, which is forbidden, is no part of the name: the other end may leave it out.
    """
    if attach.name is not None:
        return attach.name.removeprefix("\ufeff")
    if not attach.unread(0):
        return None
    sent = None if attach.odd is None else attach.odd.get(0)
    return f"?{crc32(sent.octets if isinstance(sent, Raw) else b''):08x}"


def doubted(frame: Frame, layer: str) -> i64:
    """How much is unknown since a frame: NOTHING, LINK, SESSION or ALL. layer: that its sender is in."""
    if frame.name == "undecodable" or _LAYERS.get(frame.kind, layer) != layer:
        # A frame of another layer may be one of this layer, with a wrong type.
        return ALL
    if not frame.problems or not obscure(frame):
        return NOTHING
    widest: i64 = NOTHING
    body = frame.body
    if isinstance(body, Composite) and body.broken_at < NOT_BROKEN:
        # Where a field ends that could not be read is not always known: then all behind it are unknown, too.
        widest = _depends_on(frame, "")
    fields: set[str] = set()
    for problem in frame.problems:
        if problem.code == TRAILING:
            # The octets behind the performative may be frames that a wrong size has swallowed.
            return ALL
        if problem.unread:
            field = _field(problem.path)
            fields.add(field)
            widest = max(widest, _depends_on(frame, field))
    # Where several fields do not fit, the performative itself may be another one.
    return ALL if len(fields) > 1 else widest


def _field(path: str) -> str:
    """The field of a performative in which something stands, by its path; "" for its list as a whole."""
    parts = path.split(".", 2)
    return parts[1].partition("[")[0].partition("{")[0] if len(parts) > 1 else ""


def _depends_on(frame: Frame, field: str) -> i64:
    """How much depends on a field, or ("") on all of them."""
    body = frame.body
    if isinstance(body, Open):
        return NOTHING
    if isinstance(body, Attach):
        if field in ("", "target") or isinstance(body.target, Coordinator):
            # Whoever attaches to a coordinator may name transactions on all sessions.
            return ALL
        return SESSION if field in _ATTACHES else LINK
    if isinstance(body, Flow):
        return SESSION if field == "" or field in _OF_THE_SESSION else LINK
    if isinstance(body, Detach):
        return SESSION if field in ("", "handle") else LINK
    if isinstance(body, Begin):
        return ALL if field in ("", "remote-channel") else SESSION
    if isinstance(body, (Transfer, Disposition, End)):
        return SESSION
    return ALL
