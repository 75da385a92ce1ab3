"""Methods as plain values, to be moved between processes."""

from typing import Any

from dissectors.amqp091.arguments import Method, UnknownMethod
from dissectors.amqp091.registry import new_method
from dissectors.amqp091.tables import FieldTable
from dissectors.values import Raw

__all__ = ["dump_method", "load_method"]


def dump_method(method: Method) -> tuple[object, ...]:
    """All that a method says."""
    definition = method.definition()
    odd: list[tuple[int, bytes]] = []
    if method.odd is not None:
        odd = [(at, raw.octets) for at, raw in method.odd.items() if isinstance(raw, Raw)]
    values = [value.octets if isinstance(value, FieldTable) else value for value in method.values()]
    which = (int(definition.class_id), int(definition.method_id))
    return (*which, int(method.present), tuple(values), tuple(odd))


def load_method(state: tuple[Any, ...]) -> Method:
    """What `dump_method` gave, as a method again."""
    class_id, method_id, present, values, odd = state
    method = new_method(class_id, method_id)
    if method is None:
        return UnknownMethod(class_id, method_id)
    method.present = present
    for field, value in zip(method.definition().fields, values, strict=True):
        name = field.name.replace("-", "_")
        if field.type == "table" and value is not None:
            value = FieldTable(value)
        setattr(method, name if name != "global" else "global_", value)
    if odd:
        method.odd = {at: Raw(octets) for at, octets in odd}
    return method
