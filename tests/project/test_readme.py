"""What README shows is what the program prints."""

import io
import re
from contextlib import redirect_stdout
from pathlib import Path

import pytest

from amqpscope.cli.main import app, run
from amqpscope.report.forms import NAMES, declared

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()


def blocks(language: str = "") -> list[str]:
    found = re.findall(r"^```(\w*)\n(.*?)^```$", README, flags=re.DOTALL | re.MULTILINE)
    return [block for its, block in found if its == language]


PICTURES = [block for block in blocks() if block.startswith("$ ")]


def test_there_are_pictures() -> None:
    assert [picture.splitlines()[0] for picture in PICTURES] == [
        "$ amqpscope read captures/demo.pcap",
        "$ amqpscope check captures/rhea-transfer-before-attach.pcap",
        "$ amqpscope summary captures/pika-two-threads.pcap",
        "$ amqpscope check captures/rhea-any-interface.pcap",
        "$ amqpscope why captures/rhea-transfer-before-attach.pcap 17",
        "$ amqpscope why --end captures/pika-connection-errors.pcap",
        "$ amqpscope diff captures/proton-anonymous.pcap captures/rabbitmq-proton.pcap",
        "$ amqpscope rules explain L-CREDIT",
    ]
    assert max(len(picture.splitlines()) for picture in PICTURES) > 15


def test_the_table_of_forms_has_all_of_them() -> None:
    rows = [line.split("|")[1] for line in README.splitlines() if line.startswith("| `")]
    listed = [re.findall(r"`(\w+)`(?: \(`(\.\w+)`\))?", row) for row in rows]
    forms = {name: declared(name).suffixes for name in NAMES}
    assert {
        name: (suffix,) if suffix else () for row in listed for name, suffix in row if name in NAMES
    } == forms


@pytest.mark.parametrize("picture", PICTURES, ids=lambda picture: str(picture.splitlines()[0]))
def test_a_picture_is_what_the_command_prints(picture: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its lines in order, some left out, long ones cut."""
    command, *shown = picture.splitlines()
    monkeypatch.chdir(ROOT)
    output = io.StringIO()
    with redirect_stdout(output):
        assert run(command.split()[2:]) in (0, 1)
    printed = iter(output.getvalue().splitlines())
    for line in shown:
        start = line.removesuffix("…")
        whole = start == line
        assert any(candidate == line if whole else candidate.startswith(start) for candidate in printed), line


def test_the_python_examples_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    output = io.StringIO()
    with redirect_stdout(output):
        exec(compile("".join(blocks("python")), "README.md", "exec"), {})
    assert "application-properties" in output.getvalue()
    assert "captures/demo.pcap fine []" in output.getvalue()
    assert "38 server amqp10/C-CLOSE-LAST detach is sent after close" in output.getvalue()


def test_the_configurations_are_taken(tmp_path: Path) -> None:
    """Of the examples those that are a file of their own, or a table of a shared one."""
    from amqpscope.policy.configuration import read_configuration

    examples = blocks("toml")
    assert examples
    for example in examples:
        name = "pyproject.toml" if "[tool.amqpscope]" in example else "amqpscope.toml"
        (tmp_path / name).write_text(example)
        assert read_configuration(str(tmp_path / name)).values


def test_every_command_and_option_it_names_exists() -> None:
    commands = {
        command.name or command.callback.__name__ for command in app.registered_commands if command.callback
    } | {group.name for group in app.registered_groups}
    text = "\n".join(blocks())
    for command in re.findall(r"^(?:.*\| )?amqpscope (\w+)", text, flags=re.MULTILINE):
        assert command in commands, command
    for command, options in re.findall(r"amqpscope ((?:rules |pipeline )?\w+)([^#|\n]*)", text):
        output = io.StringIO()
        with redirect_stdout(output):
            assert run([*command.split(), "--help"]) == 0, command
        for option in re.findall(r"(?<!\S)--?[a-z][a-z-]*", options):
            if not option.startswith("-v"):
                assert option in output.getvalue(), (command, option)


def test_every_note_has_its_row() -> None:
    """Of each code that the program can tell, the README says what follows; and of no other."""
    sources = [path.read_text() for path in (ROOT / "amqpscope").rglob("*.py")]
    reported = {code for text in sources for code in re.findall(r'"(capture/[a-z-]+)"', text)}
    rows = re.findall(r"^\| (`capture/[^|]*)\|", README, flags=re.MULTILINE)
    assert {code for row in rows for code in re.findall(r"`(capture/[a-z-]+)`", row)} == reported
    assert len(reported) >= 17


def test_there_are_no_placeholders_left() -> None:
    assert not re.search(r"@[A-Z]+@", README)
