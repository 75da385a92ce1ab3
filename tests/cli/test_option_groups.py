"""Groups of options: declared once, shown to typer in the place of the parameter, handed on as one object."""

from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from amqpscope.cli.option_groups import OptionGroup, with_options


class Colour(OptionGroup):
    colour: Annotated[str, typer.Option("--colour", help="Paint it.")] = "red"


class Shape(OptionGroup):
    width: Annotated[int, typer.Option("--width", "-w")] = 1
    paint: Colour
    height: Annotated[int | None, typer.Option("--height")] = None


class TallShape(Shape):
    legs: int = 4


def run(*arguments: str) -> tuple[int, str]:
    app = typer.Typer(rich_markup_mode=None)

    @app.command()
    @with_options
    def build(*, name: str, shape: TallShape, loud: bool = False) -> int:
        print(name, shape.width, shape.paint.colour, shape.height, shape.legs, loud)
        return 0

    result = CliRunner().invoke(app, list(arguments))
    return result.exit_code, result.output


def test_a_command_gets_its_groups_as_objects() -> None:
    output = run("table", "-w", "3", "--colour", "blue", "--height", "7", "--legs", "5", "--loud")
    assert output == (0, "table 3 blue 7 5 True\n")


def test_what_is_not_given_has_the_default_of_its_declaration() -> None:
    assert run("table") == (0, "table 1 red None 4 False\n")


def test_the_help_has_the_options_of_a_group_in_its_place() -> None:
    status, text = run("--help")
    assert status == 0 and "Paint it." in text
    names = ("--width", "--colour", "--height", "--legs", "--loud")
    assert [text.index(name) for name in names] == sorted(text.index(name) for name in names)


def test_two_options_of_one_name_are_refused() -> None:
    with pytest.raises(TypeError, match="two options are called colour"):

        @with_options
        def build(*, colour: str, paint: Colour) -> int:
            return 0


def test_a_group_is_made_of_what_it_is_given() -> None:
    shape = TallShape(width=2, paint=Colour(colour="blue"))
    assert (shape.width, shape.paint.colour, shape.height, shape.legs) == (2, "blue", None, 4)
