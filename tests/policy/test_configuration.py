"""The configuration file: which one holds, what may stand in it, and what is said of what may not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.sampling import examples

from amqpscope.errors import ConfigurationError, FilterError
from amqpscope.limits import MAX_CONFIGURATION
from amqpscope.policy.configuration import KEYS, find_configuration, read_configuration
from amqpscope.policy.policy import Policy


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with a folder in it, and another one around it."""
    (tmp_path / "around" / "repository" / ".git").mkdir(parents=True)
    (tmp_path / "around" / "repository" / "below" / "deep").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "around" / "repository" / "below")
    return tmp_path / "around" / "repository"


def test_the_nearest_one_holds(folder: Path) -> None:
    assert find_configuration().file == ""
    (folder.parent / "amqpscope.toml").write_text("strict = true\n")
    assert find_configuration().file == ""  # above .git
    (folder / "amqpscope.toml").write_text("strict = true\n")
    assert find_configuration().file == "../amqpscope.toml"
    (folder / "below" / "pyproject.toml").write_text("[tool.ruff]\nline-length = 80\n")
    assert find_configuration().file == "../amqpscope.toml"  # not ours
    (folder / "below" / "pyproject.toml").write_text("[tool.amqpscope]\nstrict = true\n")
    assert find_configuration().file == "pyproject.toml"
    (folder / "below" / "amqpscope.toml").write_text("")
    assert find_configuration().file == "amqpscope.toml"
    assert find_configuration(str(folder / "below" / "deep")).file == "amqpscope.toml"


def test_git_may_be_a_file(folder: Path) -> None:
    """As in a worktree or a submodule."""
    (folder / "amqpscope.toml").write_text("")
    (folder / "below" / ".git").write_text("gitdir: ../.git/worktrees/x\n")
    assert find_configuration().file == ""


def test_folders_of_these_names_are_no_files(folder: Path) -> None:
    (folder / "below" / "amqpscope.toml").mkdir()
    assert find_configuration().file == ""


def test_paths_are_relative_to_the_file(folder: Path) -> None:
    (folder / "amqpscope.toml").write_text('output = ["a.xml"]\n')
    configuration = find_configuration()
    assert configuration.path("a.xml") == "../a.xml"
    assert configuration.path("/b.xml") == "/b.xml"


def read(folder: Path, text: str | bytes, name: str = "x.toml") -> Any:
    octets = text if isinstance(text, bytes) else text.encode()
    (folder / "below" / name).write_bytes(octets)
    return read_configuration(name)


def test_every_key(folder: Path) -> None:
    found = read(
        folder,
        """
        select = ["amqp10/*", "warning"]
        ignore = "L-CREDIT,note"
        fail-on = "warning"
        fail-on-possible = true
        strict = false
        allow-empty = true
        spec = "csd01"
        profile = ["rhea", "uamqp"]
        format = "github"
        output = ["a.xml", "text:b"]
        max-per-rule = 7
        jobs = 4
        baseline = "known.json"
        tls-keylog = "keys.txt"
        tls-key = "server.pem"
        diagnoses = false
        fail-on-diagnosis = ["credit-none", "all"]
        [diagnosis-limits]
        "credit-none.seconds" = 20
        [severity]
        S-WIN-IN = "note"
        """,
    )
    assert found.values == {
        "select": ["amqp10/*", "warning"],
        "ignore": ["L-CREDIT,note"],
        "fail-on": "warning",
        "fail-on-possible": True,
        "strict": False,
        "allow-empty": True,
        "spec": "csd01",
        "profile": "rhea,uamqp",
        "format": "github",
        "output": ["a.xml", "text:b"],
        "max-per-rule": 7,
        "jobs": 4,
        "baseline": "known.json",
        "tls-keylog": ["keys.txt"],
        "tls-key": ["server.pem"],
        "diagnoses": False,
        "fail-on-diagnosis": ["credit-none", "all"],
        "diagnosis-limits": {"credit-none.seconds": 20.0},
        "severity": {"S-WIN-IN": "note"},
    }
    assert {*found.values} | {"allow"} == {*KEYS}
    (folder / "below" / "known.json").write_text('{"schema": "amqpscope/baseline/1", "findings": []}')
    policy = Policy(found)
    assert (policy.spec, policy.profile) == ("csd01", "rhea,uamqp")
    assert (policy.terms.severities, policy.terms.possible) == (("error", "warning"), True)
    assert policy.terms.allow_empty
    assert policy.level("amqp10/S-WIN-IN") == "note"


@pytest.mark.parametrize(
    ("text", "reported"),
    [
        ("\nfail_on = 'error'", "x.toml, line 2: fail_on: there is no such key; did you mean fail-on?"),
        ("serverity = {}", "x.toml, line 1: serverity: there is no such key; did you mean severity?"),
        ("zzzzz = 1", "x.toml, line 1: zzzzz: there is no such key; there are select, ignore, "),
        ("fail-on = 'err'", "x.toml, line 1: fail-on: err: must be one of error, warning, note, never"),
        ("fail-on = 1", "x.toml, line 1: fail-on: must be one of error, warning, note, never"),
        ("strict = 'yes'", "x.toml, line 1: strict: must be true or false"),
        ("allow-empty = 1", "x.toml, line 1: allow-empty: must be true or false"),
        ("fail-on-possible = []", "x.toml, line 1: fail-on-possible: must be true or false"),
        ("spec = 'csd02'", "x.toml, line 1: spec: csd02: must be one of final, csd01, csprd02"),
        ("profile = 'rabbit'", "x.toml, line 1: profile: rabbit: must be auto, none, or names out of "),
        ("profile = 1", "x.toml, line 1: profile: must be a list of texts"),
        ("profile = []", "x.toml, line 1: profile: : must be auto, none, or names out of "),
        ("format = 'yaml'", "x.toml, line 1: format: yaml: must be one of text, github, "),
        ("output = [1]", "x.toml, line 1: output: must be a list of texts"),
        ("output = ['']", "x.toml, line 1: output: must be a list of texts"),
        ("max-per-rule = 0", "x.toml, line 1: max-per-rule: must be a number, 1 or more"),
        ("baseline = 'a\\u0000'".replace("'", '"'), "x.toml, line 1: baseline: must be a text"),
        ("output = ['a\\u0000']".replace("'", '"'), "x.toml, line 1: output: must be a list of texts"),
        ("baseline = []", "x.toml, line 1: baseline: must be a text"),
        *[
            (f"jobs = {value}", 'x.toml, line 1: jobs: must be "auto" or a number from 1 to 64')
            for value in ("0", "65", "true", "1.0", "''", "[2]", "'all'")
        ],
        ("max-per-rule = true", "x.toml, line 1: max-per-rule: must be a number, 1 or more"),
        ("max-per-rule = 1.5", "x.toml, line 1: max-per-rule: must be a number, 1 or more"),
        (f"max-per-rule = 0x{'f' * 9999}", "x.toml, line 1: max-per-rule: must be a number, 1 or more"),
        ("select = 5", "x.toml, line 1: select: must be a list of texts"),
        ("select = [['x']]", "x.toml, line 1: select: must be a list of texts"),
        (
            "ignore = [\n'L-CREDTI'\n]",
            "x.toml, line 1: ignore: L-CREDTI: there is no such rule; similar rules: amqp10/L-CREDIT",
        ),
        ("severity = 1", "x.toml, line 1: severity: must be a table of rules, such as [severity] with "),
        ("[severity]\nL-CREDIT = 'off'", "x.toml, line 2: [severity] L-CREDIT: must be error, warning or "),
        ("[severity]\nL-CREDIT = 3", "x.toml, line 2: [severity] L-CREDIT: must be error, warning or note"),
        (
            "[severity]\nL-CRDIT = 'note'",
            "x.toml, line 2: [severity] L-CRDIT: there is no such rule; similar ",
        ),
        ("[severity]\nnote = 'error'", "x.toml, line 2: [severity] note: must be a rule, or a pattern"),
        ("select = [", "x.toml: is not valid TOML: "),
        ("strict = true\nstrict = true", "x.toml: is not valid TOML: "),
        (b"a = '\xff'", "x.toml: is not in UTF-8 (octet 5)"),
        ("a = " + "[" * 5000, "x.toml: is nested too deeply"),
        ("#" * (MAX_CONFIGURATION + 1), "x.toml: is larger than 1048576 octets"),
        (f"a = {'9' * 5000}", "x.toml: is not valid TOML: "),
    ],
)
def test_what_cannot_be(text: str | bytes, reported: str, folder: Path) -> None:
    with pytest.raises(ConfigurationError) as caught:
        read(folder, text)
    assert str(caught.value).startswith(reported)
    assert "\n" not in str(caught.value)


def test_a_table_of_a_shared_file(folder: Path) -> None:
    text = (
        "[project]\nname = 'x'\n[tool.amqpscope]\nstrict = true\n[tool.amqpscope.severity]\nS-WIN-IN = 'x'\n"
    )
    with pytest.raises(ConfigurationError, match=r"^pyproject.toml, line 6: \[severity\] S-WIN-IN: must be"):
        read(folder, text, "pyproject.toml")
    assert read(folder, text.replace("'x'\n", "'note'\n"), "pyproject.toml").values["strict"] is True
    for text, reported in (
        ("[tool.ruff]\n", "pyproject.toml: has no table [tool.amqpscope]"),
        ("", "pyproject.toml: has no table [tool.amqpscope]"),
        ("tool = 1\n", "pyproject.toml: tool.amqpscope: must be a table"),
        ("[tool]\namqpscope = 1\n", "pyproject.toml: tool.amqpscope: must be a table"),
    ):
        with pytest.raises(ConfigurationError) as caught:
            read(folder, text, "pyproject.toml")
        assert str(caught.value) == reported


def test_a_file_that_is_not_there(folder: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"^none.toml: No such file or directory$"):
        read_configuration("none.toml")
    with pytest.raises(ConfigurationError, match=r"^deep: Is a directory$"):
        read_configuration("deep")


def toml_value(value: object) -> str:
    """A value as TOML writes it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list):
        return f"[{', '.join(toml_value(one) for one in value)}]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{toml_value(key)} = {toml_value(one)}" for key, one in value.items()) + "}"
    if isinstance(value, str):
        return '"' + "".join(f"\\U{ord(character):08x}" for character in value) + '"'
    return str(value)


WORDS = st.one_of(
    st.sampled_from(
        [*KEYS, "error", "note", "never", "L-CREDIT", "amqp10/*", "text", "final", "rule", "reason"]
    ),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
)
VALUES = st.recursive(
    st.one_of(
        WORDS,
        st.booleans(),
        st.integers(-(2**63), 2**63 - 1),
        st.floats(),
        st.dates().map(lambda day: type("Date", (), {"__str__": lambda self: day.isoformat()})()),
    ),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(WORDS, inner, max_size=3)),
    max_leaves=6,
)


def refusal(path: Path) -> str:
    """Why a configuration is none, "" if it is one."""
    try:
        Policy(read_configuration(str(path)))
    except (ConfigurationError, FilterError) as error:
        return str(error)
    return ""


@settings(max_examples=examples(300))
@given(st.dictionaries(WORDS, VALUES, max_size=4))
def test_any_toml_is_taken_or_refused_in_one_line(
    tmp_path_factory: pytest.TempPathFactory, table: dict[str, object]
) -> None:
    path = tmp_path_factory.getbasetemp() / "any.toml"
    path.write_text("".join(f"{toml_value(key)} = {toml_value(one)}\n" for key, one in table.items()))
    reported = refusal(path)
    # A baseline that is named has a name of its own.
    assert (
        reported == ""
        or reported.startswith(str(path))
        or ": No such file" in reported
        or ": Is a dir" in reported
    )
    assert "is no TOML" not in reported


@settings(max_examples=examples(200))
@given(st.binary(max_size=60))
def test_any_octets_are_taken_or_refused(tmp_path_factory: pytest.TempPathFactory, octets: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "any.toml"
    path.write_bytes(octets)
    reported = refusal(path)
    assert reported == "" or reported.startswith(str(path))


def test_folders_that_may_not_be_looked_into_have_none(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As those around a container's working directory."""

    def refused(path: object, *_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied", path)

    with monkeypatch.context() as patch:
        patch.setattr("os.stat", refused)
        assert find_configuration().file == ""


@pytest.mark.parametrize("name", ["amqpscope.toml", "pyproject.toml"])
@pytest.mark.parametrize("target", ["lost.toml", "itself"])
def test_a_link_that_leads_nowhere_is_an_error(name: str, target: str, folder: Path) -> None:
    """What it should have said may have been stricter than no configuration."""
    (folder / "below" / name).symlink_to(name if target == "itself" else target)
    with pytest.raises(ConfigurationError, match=f"^{name}: "):
        find_configuration()


def test_a_byte_order_mark_is_no_part_of_the_text(folder: Path) -> None:
    assert read(folder, b"\xef\xbb\xbfstrict = true\n").values == {"strict": True}
    with pytest.raises(ConfigurationError, match=r"x\.toml, line 1: strikt: "):
        read(folder, b"\xef\xbb\xbfstrikt = true\n")
    with pytest.raises(ConfigurationError, match=r"is not in UTF-8 \(octet 5\)"):
        read(folder, b"\xef\xbb\xbf# \xff\n")
