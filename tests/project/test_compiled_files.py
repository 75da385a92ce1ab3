"""The list of the files that `setup.py` compiles."""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


def names(of: str) -> list[str]:
    """A list of `setup.py`, which is read and not run."""
    for node in ast.parse((ROOT / "setup.py").read_text(encoding="utf-8")).body:
        if (
            isinstance(node, ast.Assign)
            and isinstance(node.targets[0], ast.Name)
            and node.targets[0].id == of
        ):
            found: list[str] = ast.literal_eval(node.value)
            return found
    raise AssertionError(of)


@pytest.mark.parametrize("of", ["COMPILED_FOLDERS", "NOT_COMPILED", "COMPILED_FILES", "OFTEN"])
def test_what_the_lists_name_is_there(of: str) -> None:
    assert [name for name in names(of) if not (ROOT / name).exists()] == []


def test_each_file_is_named_where_it_has_to_be() -> None:
    folders = names("COMPILED_FOLDERS")
    assert all(str(Path(name).parent.as_posix()) in folders for name in names("NOT_COMPILED"))
    assert not any(str(Path(name).parent.as_posix()) in folders for name in names("COMPILED_FILES"))


def test_what_is_named_as_taking_time_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    compiled = build_script()["compiled"]()
    assert [name for name in names("OFTEN") if name not in compiled] == []


def build_script() -> dict[str, Any]:
    """The names of `setup.py`, without the call of `setup`."""
    script = (ROOT / "setup.py").read_text(encoding="utf-8").partition("\nsetup(")[0]
    found: dict[str, Any] = {"__file__": str(ROOT / "setup.py")}
    exec(compile(script, "setup.py", "exec"), found)
    return found


SHARED = """\
#include <init.c>
#include "__native_group.h"
int CPyGlobalsInit(void)
{
}
"""
# As mypyc writes the C of a module: a class, its functions, and what starts the module.
MODULE = """\
#include "__native_group.h"
#include "__native_internal_group.h"
    static PyTypeObject *CPyType_M___C_template = &CPyType_M___C_template_;
    static bool
    CPyDef_M___C_trait_vtable_setup(void)
    {
    }

char CPyDef_M___C___read(PyObject *cpy_r_self) {
    return 1;
}

        PyObject *CPyPy_M___C___read(PyObject *self, PyObject *const *args, size_t nargs) {
            return CPyDef_M___C___read(self);
        }

char CPyDef_M_____top_level__(void) {
    CPyDef_M___C_trait_vtable_setup();
}
"""


def test_what_takes_time_stands_in_one_file_of_c(tmp_path: Path) -> None:
    script = build_script()
    script["OFTEN"] = ["amqpscope/a.py"]
    sources = [tmp_path / f"__native_{name}.c" for name in ("group", "amqpscope___a", "amqpscope___b")]
    for source, text in zip(sources, (SHARED, MODULE, MODULE.replace("M___", "N___")), strict=True):
        source.write_text(text)
    files = [Path(name) for name in script["arrange"](sources, tmp_path)]
    assert [file.name for file in files] == ["often.c", *(f"seldom{number}.c" for number in range(4))]
    often, *others = [file.read_text() for file in files]
    assert often.startswith(SHARED)
    started, other = [text for text in others if text]
    assert "CPyDef_M___C___read(PyObject *cpy_r_self) {" in often
    assert "CPyPy_" not in often and "top_level" not in often
    assert "PyObject *CPyPy_M___C___read(" in started and "char CPyDef_M_____top_level__(void) {" in started
    assert other == MODULE.replace("M___", "N___")
    # What the function that starts the module needs of the other file.
    assert "\nPyTypeObject *CPyType_M___C_template = &" in often
    assert "extern PyTypeObject *CPyType_M___C_template;\n" in started
    assert "\nbool\n    CPyDef_M___C_trait_vtable_setup(void)\n" in often
    assert re.search(r"extern bool\s+CPyDef_M___C_trait_vtable_setup\(void\);\n", started)
