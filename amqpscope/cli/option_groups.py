"""Groups of options that several commands have.

Theory of operation. A group is a class whose fields are annotated as typer wants parameters to be: type,
names, help, and the default behind them. A field may be a group, too. A command takes a group as one
parameter, and `with_options` shows typer the fields in its place, in their order. So an option is declared
once, wherever it is offered, and a command passes the whole group on as one object.

To a type checker a group is a frozen dataclass. It is none, because a dataclass takes a millisecond to be
made, and each command would wait for all of its groups.
"""

import functools
import inspect
from collections.abc import Callable, Iterator
from typing import Any, dataclass_transform

__all__ = ["OptionGroup", "with_options"]


@dataclass_transform(kw_only_default=True, frozen_default=True)
class OptionGroup:
    """What was given for the options of a group: an attribute for each of them."""

    def __init__(self, **given: Any) -> None:
        # A default is the attribute of its class.
        self.__dict__.update(given)


def with_options(command: Callable[..., int]) -> Callable[..., int]:
    """`command`, but called with each option by its name, as typer does it.

    command: takes keywords only; a parameter that is annotated with an `OptionGroup` stands for its options.
    Raises TypeError if two options have one name.
    """
    signature = inspect.signature(command)
    options: dict[str, inspect.Parameter] = {}
    for parameter in signature.parameters.values():
        for option in _options_of(parameter):
            if options.setdefault(option.name, option) is not option:
                raise TypeError(f"{command.__name__}: two options are called {option.name}")

    @functools.wraps(command)
    def called(**given: Any) -> int:
        return command(
            **{name: _taken(one.annotation, name, given) for name, one in signature.parameters.items()}
        )

    called.__signature__ = signature.replace(parameters=list(options.values()))  # type: ignore[attr-defined]
    called.__annotations__ = {name: option.annotation for name, option in options.items()}
    return called


def _options_of(parameter: inspect.Parameter) -> Iterator[inspect.Parameter]:
    """The options that a parameter stands for: itself, or those of the group."""
    group = parameter.annotation
    if not _is_group(group):
        yield parameter
        return
    for name, kind in _fields(group).items():
        default = getattr(group, name, inspect.Parameter.empty)
        yield from _options_of(parameter.replace(name=name, annotation=kind, default=default))


def _taken(kind: Any, name: str, given: dict[str, Any]) -> Any:
    """What a parameter of this type and name gets of the options that were given."""
    if not _is_group(kind):
        return given[name]
    return kind(**{field: _taken(inner, field, given) for field, inner in _fields(kind).items()})


def _is_group(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, OptionGroup)


def _fields(group: type[OptionGroup]) -> dict[str, Any]:
    """The types of the fields of a group by their names; those of a group that it extends come first."""
    return {
        name: kind for one in reversed(group.__mro__) for name, kind in inspect.get_annotations(one).items()
    }
