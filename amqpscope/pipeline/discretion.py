"""What the state of a capture set never holds: passwords, and the octets of messages that went by.

Octets are kept of a connection so that a second copy can be compared with the first. A state has only how
many these were. A second copy that comes later cannot be compared then, and the set is analysed anew. Of a
login that is over, the fields that are secret have zeros. While one is under way, or where anything else may
be a password, there is no state.
"""

import re
from typing import Any, Final

from amqpscope.model.passwords import without_password
from amqpscope.pipeline.object_classes import Censor
from amqpscope.reassembly.recent import RecentOctets
from amqpscope.reassembly.waiting import DATA, WaitingOctets
from amqpscope.report.secrets import hides_octets, is_secret_key
from dissectors.amqp091.arguments import Method
from dissectors.amqp10.composite import Composite
from dissectors.interface import Frame
from dissectors.values import Pairs

__all__ = ["Discreet"]

_LOGIN: Final = re.compile(
    # The types of SASL, by their codes and by their symbols.
    rb"\x00\x53[\x40-\x44]|\x00\x80\0{7}[\x40-\x44]|amqp:sasl-"
    # start-ok, secure, secure-ok and update-secret, of the class connection.
    rb"|\x00\x0a\x00[\x0b\x14\x15\x46]",
    re.S,
)


class Discreet(Censor):
    """Lets no password pass."""

    def concerns(self, of: type) -> bool:
        return of in (bytes, str, Frame, WaitingOctets) or issubclass(of, Pairs)

    def forbids(self, thing: Any) -> bool:
        of = type(thing)
        if of is bytes:
            return _LOGIN.search(thing) is not None or hides_octets(thing)
        if of is str:
            return "@" in thing and without_password(thing) != thing
        if of is Frame:
            return bool(_secrets(thing.body))
        if of is WaitingOctets:
            return thing.kind == DATA and bool(thing.octets)
        if isinstance(thing, Pairs):
            return any(is_secret_key(key) for key, _ in thing.pairs)
        return False

    def instead(self, thing: Any) -> Any:
        return thing.without_octets() if type(thing) is RecentOctets else thing

    def changes(self, of: type) -> bool:
        return of is RecentOctets or issubclass(of, Method | Composite)

    def blacken(self, thing: Any, state: dict[str, Any]) -> None:
        for name in _secrets(thing):
            value = state[name]
            state[name] = bytes(len(value)) if isinstance(value, bytes) else None


def _secrets(body: Any) -> list[str]:
    """The attributes of a frame's body that are secret, and not empty."""
    if isinstance(body, Method):
        names = [field.name for field in body.definition().fields if field.secret]
    elif isinstance(body, Composite) and body.definition().is_sasl_frame:
        fields = body.definition().fields
        names = [field.name for field in fields if field.secret or field.type == "binary"]
    else:
        return []
    names = [name.replace("-", "_") for name in names]
    return [name for name in names if getattr(body, name)]
