"""A command imports what it needs and nothing of the other commands. Imports are most of a short run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from amqpscope.cli.commands import COMMANDS, GROUPS

ROOT = Path(__file__).resolve().parent.parent.parent

# What only other commands need, and of Python what takes long to load.
OTHERS = (
    "amqpscope.capture.live",
    "amqpscope.cli.completion",
    "amqpscope.conformance",
    "amqpscope.diff",
    "amqpscope.draw",
    "amqpscope.pipeline",
    "amqpscope.pytest_plugin",
    "amqpscope.report.rule_page",
    "amqpscope.report.rule_pages",
    "amqpscope.why",
    "pyshark",
    "pyspark",
    "rich.progress",
    "rich.live",
    "scapy",
    "xml",
)

# What takes longer to load than to read a small capture, and is needed only for what such a run does not do:
# values of options that have to be converted, colours, TLS, and help for a wrong command.
SLOW = (
    "amqpscope.cli.advice",
    "asyncio",
    "concurrent",
    "cryptography",
    "email",
    "hashlib",
    "importlib.metadata",
    "importlib.resources",
    "jsonschema",
    "multiprocessing",
    "pydantic",
    "rich.cells",
    "rich.console",
    "secrets",
    "socket",
    "ssl",
    "typer._adapters",
    "zipfile",
)

CODE = "import sys; from amqpscope.cli.main import run; run(sys.argv[1:]); print('LOADED', *sys.modules)"


def loaded(*arguments: str) -> set[str]:
    """The modules that are loaded when a command has run."""
    result = subprocess.run(
        [sys.executable, "-c", CODE, *arguments], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return set(result.stdout.rpartition("LOADED")[2].split())


def of_others(modules: set[str], others: tuple[str, ...] = OTHERS) -> set[str]:
    """Those that belong to the others, or lie below one of them."""
    return {name for name in modules if any(f"{name}.".startswith(f"{other}.") for other in others)}


@pytest.mark.parametrize("command", [["read"], ["check", "--no-diagnoses"]])
def test_who_diagnoses_nothing_loads_no_watches(command: list[str]) -> None:
    assert "amqpscope.diagnoses.capture" not in loaded(*command, "captures/demo.pcap")


@pytest.mark.parametrize("name", ["check", "read", "summary", "triage"])
def test_a_command_loads_nothing_of_the_other_commands(name: str) -> None:
    modules = loaded(name, "captures/demo.pcap")
    assert f"amqpscope.cli.{name}" in modules
    assert of_others(modules) == set()
    assert {one for one in {*COMMANDS, *GROUPS} if f"amqpscope.cli.{one}" in modules} == {name}


def test_the_help_loads_no_command() -> None:
    modules = loaded("--help")
    assert {name for name in modules if name.startswith("amqpscope.cli.")} <= {
        f"amqpscope.cli.{name}"
        for name in ("main", "color", "commands", "help", "output", "pager", "plain_values", "status")
    }


@pytest.mark.parametrize("option", ["--version", "--help"])
def test_what_reads_no_capture_loads_no_analysis(option: str) -> None:
    heavy = ("amqpscope.analysis", "amqpscope.input.capture", "amqpscope.protocols", "amqpscope.tracking")
    assert {name for name in loaded(option) if name.startswith(heavy)} == set()


@pytest.mark.parametrize(
    "arguments",
    [
        ["--version"],
        ["check", "captures/amqplib-forced-close.pcap"],
        ["check", "--no-diagnoses", "captures/demo.pcap"],
        ["read", "--count", "captures/demo.pcap"],
    ],
    ids=lambda arguments: "-".join(arguments[:2]).replace("/", "-"),
)
def test_a_short_run_loads_nothing_slow(arguments: list[str]) -> None:
    assert of_others(loaded(*arguments), SLOW) == set()


# Captures in which everybody speaks one protocol, and the packages of the others. The draft is a dialect of
# AMQP 1.0: what decodes and translates it is loaded to tell the two apart.
ONE_PROTOCOL = [
    ("captures/demo.pcap", ("amqp091", "amqp10_draft2011")),
    ("captures/amqplib-forced-close.pcap", ("amqp10", "amqp10_draft2011")),
]


def of_protocols(modules: set[str], names: tuple[str, ...], parts: tuple[str, ...]) -> set[str]:
    """The modules in the packages of these protocols, such as `amqpscope.rules.amqp10`."""
    return of_others(modules, tuple(f"amqpscope.{part}.{name}" for part in parts for name in names))


@pytest.mark.parametrize("command", ["check", "read", "summary"])
@pytest.mark.parametrize(("capture", "others"), ONE_PROTOCOL, ids=["amqp10", "amqp091"])
def test_a_capture_loads_no_rules_of_a_protocol_that_nobody_speaks(
    command: str, capture: str, others: tuple[str, ...]
) -> None:
    modules = loaded(command, capture)
    assert of_protocols(modules, ("amqp10", "amqp091"), ("rules",))
    assert of_protocols(modules, others, ("correlation", "diagnoses", "rules")) == set()


@pytest.mark.parametrize(
    ("capture", "others"),
    [("captures/demo.pcap", ("amqp091",)), ("captures/amqplib-forced-close.pcap", ("amqp10",))],
    ids=["amqp10", "amqp091"],
)
def test_a_check_loads_nothing_that_follows_a_protocol_that_nobody_speaks(
    capture: str, others: tuple[str, ...]
) -> None:
    modules = loaded("check", capture)
    assert of_protocols(modules, others, ("report", "tracking")) <= {"amqpscope.tracking.amqp10.identity"}
    decoders = tuple(f"dissectors.{name}.{part}" for name in others for part in ("frame", "message"))
    assert of_others(modules, decoders) == set()


def test_a_check_without_findings_loads_no_words_of_rules_and_no_frames_as_text() -> None:
    modules = loaded("check", "captures/demo.pcap")
    words = ("catalogue", "explanation", "references")
    assert of_others(modules, tuple(f"amqpscope.rules.{name}" for name in words)) == set()
    shown = ("findings", "json_renderers", "summary", "text_renderers", "timeline", "verdict")
    assert of_others(modules, tuple(f"amqpscope.report.{name}" for name in shown)) == set()
    forms = {name for name in modules if name.startswith("amqpscope.report.forms.")}
    assert forms == {"amqpscope.report.forms.text"}
