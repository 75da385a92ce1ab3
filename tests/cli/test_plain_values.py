"""Options whose values are taken as they are have the values that typer gives them."""

from __future__ import annotations

import enum
from typing import Annotated, Any

import pytest
import typer
from typer.core import TyperCommand

from amqpscope.cli.help import HelpfulCommand


class Fruit(enum.StrEnum):
    """Words to choose from."""

    apple = "apple"
    pear = "pear"


def values(cls: type[TyperCommand], arguments: list[str]) -> object:
    """What a command gets for these arguments, or the class and the text of the error."""
    got: dict[str, Any] = {}
    app = typer.Typer(rich_markup_mode=None)

    @app.command(cls=cls)
    def command(
        paths: Annotated[list[str] | None, typer.Argument()] = None,
        name: Annotated[str | None, typer.Option()] = None,
        place: Annotated[str, typer.Option()] = "here",
        many: Annotated[list[str] | None, typer.Option()] = None,
        fruit: Annotated[Fruit | None, typer.Option()] = None,
        sure: Annotated[bool | None, typer.Option("--sure/--unsure")] = None,
        number: Annotated[int, typer.Option(min=2)] = 3,
    ) -> None:
        got.update(locals())
        got.pop("got")

    try:
        typer.main.get_command(app)(arguments, standalone_mode=False)
    except typer.TyperException as error:
        return type(error).__name__, error.format_message()
    return {name: (type(value), value) for name, value in got.items()}


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["a", "b"],
        ["--name", "", "--place", "there"],
        ["--many", "x", "--many", "y"],
        ["--fruit", "pear"],
        ["--fruit", "Pear"],
        ["--fruit", "plum"],
        ["--sure"],
        ["--unsure", "a"],
        ["--number", "5"],
        ["--number", "1"],
        ["--number", "x"],
    ],
    ids=" ".join,
)
def test_values_are_those_of_typer(arguments: list[str]) -> None:
    assert values(HelpfulCommand, arguments) == values(TyperCommand, arguments)
