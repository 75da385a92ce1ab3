"""Values of options that need no conversion.

typer converts every value with pydantic. To load pydantic takes longer than to start the rest of the program,
and most values are text, a word of a list, or a default that has its type already. These are taken as they
are. All others, wrong words among them, are left to typer.
"""

from enum import StrEnum
from functools import partial
from typing import Any

__all__ = ["take_plain_values"]


class _Plain:
    """Converts values of one parameter. usual: gives what typer converts them with."""

    def __init__(self, usual: Any) -> None:
        self._usual = usual

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        """The value of the parameter for what was given for it; None if nothing was."""
        several = param.multiple or param.nargs == -1
        if value is None:
            return () if several else None
        kind = param.type_descriptor.annotation
        if several:
            if (
                kind == list[str]
                and isinstance(value, list | tuple)
                and {type(one) for one in value} <= {str}
            ):
                return list(value)
        elif kind in (str, int) and type(value) is kind and not param.type_descriptor.is_ranged:
            return value
        elif isinstance(kind, type) and issubclass(kind, StrEnum) and value in kind.__members__.values():
            return kind(value)
        return self._usual().coerce(value, param=param, ctx=ctx)


def take_plain_values(parameters: list[Any]) -> list[Any]:
    """Let the parameters of a command take values that need no conversion as they are. Returns them."""
    for one in parameters:
        usual = getattr(one, "get_runtime_param", None)
        if usual is not None and "get_runtime_param" not in vars(one):
            one.get_runtime_param = partial(_Plain, usual)
    return parameters
