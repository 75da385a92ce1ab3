"""What README shows is what the program prints."""

import io
import re
from contextlib import redirect_stdout
from pathlib import Path

from amqpscope.cli.main import app, run

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()


def blocks(language: str = "") -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", README, flags=re.DOTALL | re.MULTILINE)


def test_the_first_picture_is_what_the_command_prints() -> None:
    """Its lines in order, some left out, long ones cut."""
    command, *shown = blocks()[0].splitlines()
    assert command == "$ amqpscope read captures/demo.pcap"
    assert len(shown) > 15
    output = io.StringIO()
    with redirect_stdout(output):
        assert run(["read", str(ROOT / "captures" / "demo.pcap")]) == 0
    printed = iter(output.getvalue().splitlines())
    for line in shown:
        start = line.removesuffix("…")
        assert any(candidate.startswith(start) for candidate in printed), line


def test_the_python_example_runs() -> None:
    code = blocks("python")[0].replace('"captures/demo.pcap"', repr(str(ROOT / "captures" / "demo.pcap")))
    output = io.StringIO()
    with redirect_stdout(output):
        exec(compile(code, "README.md", "exec"), {})
    assert "application-properties" in output.getvalue()


def test_every_command_and_option_it_names_exists() -> None:
    commands = {
        command.name or command.callback.__name__ for command in app.registered_commands if command.callback
    }
    text = "\n".join(blocks())
    for command in re.findall(r"^(?:.*\| )?amqpscope (\w+)", text, flags=re.MULTILINE):
        assert command in commands, command
    for command, options in re.findall(r"amqpscope (\w+)([^#|\n]*)", text):
        output = io.StringIO()
        with redirect_stdout(output):
            run([command, "--help"])
        for option in re.findall(r"(?<!\S)--?[a-z][a-z-]*", options):
            if not option.startswith("-v"):
                assert option in output.getvalue(), (command, option)


def test_there_are_no_placeholders_left() -> None:
    assert not re.search(r"@[A-Z]+@", README)
