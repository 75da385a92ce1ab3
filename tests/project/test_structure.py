"""The shape of the code: names that mean one thing, classes and signatures that can be taken in at once."""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
FILES = {
    path.relative_to(ROOT).as_posix(): ast.parse(path.read_text("utf-8"))
    for folder in ("amqpscope", "dissectors")
    for path in sorted((ROOT / folder).rglob("*.py"))
}

# The draft of April 2011 has the frames of the final specification, so it has their names, too.
DRAFT = "dissectors/amqp10_draft2011/"

MOST_ATTRIBUTES = 20
MOST_PARAMETERS = 7

# An attribute for each column of a table, and for each field of a record.
LARGE = {"Amqp10Fields", "DeliveryColumns", "Finding", "FrameColumns", "ProxySource"}

# What is called with names: by users, by the declarations of rules, and for a record with so many fields.
LONG = {"judge", "analyse", "Analysis.write", "Rules.rule", "diagnosis", "Notebook.add", "Diagnosis.__init__"}


def classes() -> Iterator[tuple[str, ast.ClassDef]]:
    for name, tree in FILES.items():
        for node in tree.body:
            if isinstance(node, ast.ClassDef):
                yield name, node


def attributes(node: ast.ClassDef) -> set[str]:
    """What the methods of a class assign to `self`."""
    return {
        one.attr
        for one in ast.walk(node)
        if isinstance(one, ast.Attribute)
        and isinstance(one.ctx, ast.Store)
        and isinstance(one.value, ast.Name)
        and one.value.id == "self"
    }


def functions() -> Iterator[tuple[str, str, int]]:
    """File, name, and number of parameters without the object itself."""
    for name, tree in FILES.items():
        for node in tree.body:
            if isinstance(node, ast.FunctionDef):
                yield name, node.name, len(parameters(node))
            elif isinstance(node, ast.ClassDef):
                for one in node.body:
                    if isinstance(one, ast.FunctionDef):
                        number = len([each for each in parameters(one) if each not in ("self", "cls")])
                        yield name, f"{node.name}.{one.name}", number


def parameters(node: ast.FunctionDef) -> list[str]:
    given = node.args
    return [one.arg for one in (*given.posonlyargs, *given.args, *given.kwonlyargs)]


def test_a_public_class_name_means_one_class() -> None:
    places: dict[str, list[str]] = {}
    for name, node in classes():
        if not node.name.startswith("_") and not name.startswith(DRAFT):
            places.setdefault(node.name, []).append(name)
    assert {name: found for name, found in places.items() if len(found) > 1} == {}


def test_a_class_has_few_attributes() -> None:
    large = {node.name for _, node in classes() if len(attributes(node)) > MOST_ATTRIBUTES}
    assert large - LARGE == set()


def test_a_function_has_few_parameters() -> None:
    """Those of commands are options, and those of generated classes the fields of a frame."""
    generated = ("dissectors/amqp10/performatives.py", "dissectors/amqp091/methods.py")
    long = {
        shown
        for name, shown, number in functions()
        if number > MOST_PARAMETERS
        and not name.startswith(("amqpscope/cli/", "dissectors/amqp10_draft2011/"))
        and name not in generated
    }
    assert long - LONG == set()


def test_few_files_lie_outside_of_a_package() -> None:
    loose = {name for name in FILES if name.count("/") == 1 and name.startswith("amqpscope/")}
    assert loose == {f"amqpscope/{name}.py" for name in ("__init__", "__main__", "errors", "limits")}
