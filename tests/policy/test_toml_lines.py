"""Where in a TOML file something stands."""

from __future__ import annotations

import tomllib

import pytest

from amqpscope.policy.toml_lines import line_of_key, lines_of_entries

WHOLE = '''# select = ["a"]
text = """
select = 1
[[allow]]
"""
[tool.other]
select = 2
[tool.amqpscope]
strict = true
select = [
  "x",
]
severity."a/b" = "note"

[tool.amqpscope.nested]
"a.b" = 1

[[tool.amqpscope.allow]]
rule = "one"
note = """
[[tool.amqpscope.allow]]
"""
[[ tool . amqpscope . "allow" ]]
rule = "two"
'''

OURS = ("tool", "amqpscope")


@pytest.mark.parametrize(
    ("table", "key", "line"),
    [
        (OURS, "select", 10),
        (("tool", "other"), "select", 7),
        (OURS, "strict", 9),
        (OURS, "severity", 13),
        ((*OURS, "severity"), "a/b", 13),
        ((*OURS, "nested"), "a.b", 16),
        (OURS, "nested", 15),
        ((), "text", 2),
        (OURS, "missing", 0),
    ],
)
def test_keys(table: tuple[str, ...], key: str, line: int) -> None:
    tomllib.loads(WHOLE)
    assert line_of_key(WHOLE, table, key) == line


def test_entries() -> None:
    assert lines_of_entries(WHOLE, OURS, "allow", 2) == [18, 23]
    assert lines_of_entries("[[allow]]\n\n[[allow]]\n", (), "allow", 2) == [1, 3]
    assert lines_of_entries("a = 1\nallow = [{}, {}]\n", (), "allow", 2) == [2, 2]
