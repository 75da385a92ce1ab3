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
    "csv",
    "decimal",
    "email",
    "hashlib",
    "importlib.metadata",
    "importlib.resources",
    "jsonschema",
    "multiprocessing",
    "pkgutil",
    "pydantic",
    "rich.cells",
    "rich.console",
    "secrets",
    "socket",
    "ssl",
    "tempfile",
    "typer._adapters",
    "unicodedata",
    "zipfile",
)

RUN = "import sys; from amqpscope.cli.main import run; run(sys.argv[1:])"

CODE = f"{RUN}; print('LOADED', *sys.modules)"

# What takes as long to make as to load a whole module, and is made when the module is loaded.
MADE = f"""{RUN}
import re
print("LOADED", *(
    f"{{name}}.{{key}}"
    for name, module in sys.modules.items()
    if name.startswith(("amqpscope.", "dissectors."))
    for key, value in vars(module).items()
    if isinstance(value, re.Pattern)
    or (getattr(value, "__module__", "") == name and hasattr(value, "_fields"))
    or (getattr(value, "__module__", "") == name and hasattr(value, "__dataclass_fields__"))
))
"""


def loaded(*arguments: str, code: str = CODE) -> set[str]:
    """The modules that are loaded when a command has run. code: prints something else of them."""
    result = subprocess.run(
        [sys.executable, "-c", code, *arguments], cwd=ROOT, capture_output=True, text=True, check=True
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
        ["check", "captures/proton-heartbeat.pcap"],
        ["check", "captures/rhea-link-refused.pcap"],
        ["check", "--no-diagnoses", "captures/demo.pcap"],
        ["read", "--count", "captures/demo.pcap"],
    ],
    ids=lambda arguments: "-".join(arguments).replace("/", "-"),
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


@pytest.mark.parametrize("capture", ["amqplib-forced-close", "proton-heartbeat"], ids=["amqp091", "amqp10"])
def test_a_check_that_only_counts_findings_loads_no_words_of_rules(capture: str) -> None:
    modules = loaded("check", f"captures/{capture}.pcap")
    words = ("catalogue", "explanation", "references")
    assert of_others(modules, tuple(f"amqpscope.rules.{name}" for name in words)) == set()
    assert "amqpscope.rules.registry" in modules  # there are findings


@pytest.mark.parametrize("options", [[], ["--count"]], ids=["text", "count"])
def test_a_read_without_findings_loads_nothing_that_shows_findings(options: list[str]) -> None:
    modules = loaded("read", *options, "captures/demo.pcap")
    shown = ("amqpscope.model.volatile", "amqpscope.report.ladder", "amqpscope.report.verdict")
    words = ("catalogue", "explanation", "references")
    assert of_others(modules, (*shown, *(f"amqpscope.rules.{name}" for name in words))) == set()


@pytest.mark.parametrize(
    ("capture", "judges", "others"),
    [
        ("amqplib-forced-close", "entities", "contents"),  # operations, and no message
        ("proton-heartbeat", "resumption", "intermediary"),  # a link, and no message
    ],
)
def test_what_compares_connections_is_loaded_for_what_they_have(
    capture: str, judges: str, others: str
) -> None:
    modules = loaded("check", f"captures/{capture}.pcap")
    assert f"amqpscope.correlation.{judges}" in modules
    assert f"amqpscope.correlation.{others}" not in modules


@pytest.mark.parametrize("capture", ["amqplib-forced-close", "demo", "proton-heartbeat"])
def test_a_short_run_makes_hardly_a_pattern_or_a_class_of_tuples(capture: str) -> None:
    assert loaded("check", f"captures/{capture}.pcap", code=MADE) <= {
        "amqpscope.diagnoses.declaration.Limit",
        "amqpscope.input.capture.CaptureOptions",
        "amqpscope.report.printable._PLAIN",
        "amqpscope.rules.declaration.Declaration",
        "dissectors.amqp091.frame._CANDIDATE",
    }
