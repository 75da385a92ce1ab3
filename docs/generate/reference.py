"""The pages of the reference that come from the code: each function gives the text of one.

Nothing of it is in the repository: `hooks` writes them when the site is built.
"""

import importlib.util
import tomllib
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from amqpscope.capture import link_layer
from amqpscope.cli.config import DEFAULTS
from amqpscope.cli.manual import Option, described
from amqpscope.diagnoses.registry import kinds
from amqpscope.policy.allow_list import SCOPES
from amqpscope.policy.configuration import KEYS
from amqpscope.rules.profiles import PROFILES
from amqpscope.schemas.declared import COMMON, SCHEMAS

ROOT: Final = Path(__file__).parent.parent.parent


def table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    """A table of Markdown."""
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join("| " + " | ".join(map(_cell, line)) + " |" for line in lines) + "\n"


def _cell(text: str) -> str:
    """A cell: between backticks a bar stands for itself."""
    parts = text.split("`")
    return "`".join(part if index % 2 else part.replace("|", "\\|") for index, part in enumerate(parts))


def escaped(text: str) -> str:
    """Words of a help as Markdown: what may look like markup stands for itself, backticks stay code."""
    parts = " ".join(text.split()).split("`")
    if len(parts) % 2 == 0:
        parts = [" ".join(text.split()).replace("`", "'")]
    for index in range(0, len(parts), 2):
        for character in "\\*_<[":
            parts[index] = parts[index].replace(character, "\\" + character)
    return "`".join(parts)


# ---- commands -------------------------------------------------------------------------------------------


def commands() -> str:
    """Every command with its arguments and options."""
    whole, *rest = described()
    text = "# Commands\n\n" + _paragraphs(whole.help, whole.epilog) + _options(whole.options, {})
    for command in rest:
        level = "###" if " " in command.path else "##"
        text += f"\n{level} {command.path} {{ #{command.path.replace(' ', '-')} }}\n\n"
        if not command.group:
            arguments = "".join(
                f" {metavar}{'...' if several else ''}" for metavar, _, several in command.arguments
            )
            text += f"```text\namqpscope {command.path} [OPTIONS]{arguments}\n```\n\n"
        text += _paragraphs(command.help, "")
        text += _options(
            command.options, {metavar: words for metavar, words, _ in command.arguments if words}
        )
        text += _paragraphs("", command.epilog)
    return text


def _paragraphs(text: str, epilog: str) -> str:
    """A help, and what stands below it: paragraphs that begin with \\b line by line."""
    found = []
    for paragraph in f"{text}\n\n{epilog}".split("\n\n"):
        first, *more = paragraph.strip("\n").split("\n")
        if first.strip() == "\b":
            found.append("```text\n" + "\n".join(more) + "\n```\n\n")
        elif paragraph.strip():
            found.append(escaped(paragraph) + "\n\n")
    return "".join(found)


def _options(options: tuple[Option, ...], arguments: dict[str, str]) -> str:
    """Arguments and options, in the groups of the help."""
    panels: dict[str, list[tuple[str, ...]]] = {}
    for metavar, words in arguments.items():
        panels.setdefault("Arguments", []).append((f"`{metavar}`", escaped(words)))
    for option in options:
        panels.setdefault(option.panel, []).append((f"`{option.shown}`", escaped(option.help)))
    return "".join(table((panel, ""), rows) + "\n" for panel, rows in panels.items())


# ---- the configuration ----------------------------------------------------------------------------------

_TABLES: Final = {
    "severity": "A table: by rule or pattern of rules the severity `error`, `warning` or `note`.",
    "diagnosis-limits": 'A table: limits of diagnoses, such as `"credit-none.seconds" = 20`.',
    "allow": "A list of tables: the [allow-list](../guides/configuration.md#allow-list).",
}


def configuration() -> str:
    """Every key, by the option of the same name."""
    check = next(command for command in described() if command.path == "check")
    helps = {name: option.help for option in check.options for name in option.names}
    rows = []
    for key in KEYS:
        words = _TABLES.get(key) or escaped(helps[f"--{key}"].partition(" [default")[0])
        default = DEFAULTS.get(key)
        rows.append((f"`{key}`", f"`{_toml(default)}`" if default not in (None, {}) else "", words))
    return (
        "# Configuration keys\n\nThe keys of `amqpscope.toml`, and of the table `[tool.amqpscope]` in `pyproject.toml`. "
        "[Configuration](../guides/configuration.md) shows a whole file. `amqpscope config show` prints what holds in "
        "a directory.\n\n" + table(("key", "default", "meaning"), rows) + "\n## Keys of `[[allow]]`\n\n"
        "`rule` and `reason` are required. `expires` is a date. All others limit what the entry excuses: "
        + ", ".join(f"`{scope}`" for scope in SCOPES) + ".\n"
    )  # fmt: skip


def _toml(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return str(value).replace("'", '"') if isinstance(value, list | int) else f'"{value}"'


# ---- products, link types, tables -----------------------------------------------------------------------


def diagnoses() -> str:
    """Every kind of diagnosis: what it means, who has to act, and what each side can do."""
    text = (
        "# Diagnoses\n\nA diagnosis says who waits for whom, since when, and why. `summary` begins with the diagnoses, and "
        "`check` shows them below the findings. A diagnosis accuses nobody, because no rule is broken. Diagnoses "
        "change the exit status only with `--fail-on-diagnosis CODE`. Limits are in seconds of packet time. "
        "The table `[diagnosis-limits]` of the configuration file changes the limits.\n"
    )
    for kind in kinds().values():
        words = [
            f"**{head}.** {escaped(words)}\n"
            for head, words in kind.sections().items()
            if head != "Discussions"
        ]
        text += f"\n## {kind.code}\n\n{escaped(kind.sentence)}\n\n" + "\n".join(words)
        text += f"\nDrawings of two captures, and discussions of users: [{kind.code}](../rules/{kind.code}/README.md).\n"
        if kind.limits:
            rows = [
                (f"`{kind.name}.{one.name}`", f"{one.value:g}", escaped(one.reason)) for one in kind.limits
            ]
            text += "\n" + table(("limit", "value", "reason"), rows)
    return text


def profiles() -> str:
    """Known deviations of products."""
    text = (
        "# Products\n\nKnown deviations of products: a finding that is one becomes a note, if the open of the peer "
        "names the product and the other peer does not complain. `--profile` chooses.\n"
    )
    for profile in PROFILES:
        marks = []
        for mark in profile.marks:
            before = f" and a version below {'.'.join(map(str, mark.before))}" if mark.before else ""
            marks.append(f"`{mark.field}` `{mark.pattern}`{before}")
        text += f"\n## {profile.name}\n\n{profile.product}, recognized by {' or '.join(marks)}.\n\n"
        text += table(
            ("rule", "what it does", "source"),
            (
                (f"[{habit.rule}](../rules/{habit.rule}/README.md)", escaped(habit.does), f"<{habit.source}>")
                for habit in profile.habits
            ),
        )
    return text


_LINK_TYPES: Final = {
    "LINK_NULL": "BSD loopback",
    "LINK_ETHERNET": "Ethernet, with VLAN tags, LLC, MPLS, PPPoE, and Cisco's ISL",
    "LINK_RAW_A": "raw IP, as some systems number it",
    "LINK_RAW_B": "raw IP, as some systems number it",
    "LINK_RAW": "raw IP",
    "LINK_LOOP": "OpenBSD loopback",
    "LINK_LINUX_SLL": "Linux cooked capture, version 1 (`tcpdump -i any`)",
    "LINK_IPV4": "raw IPv4",
    "LINK_IPV6": "raw IPv6",
    "LINK_LINUX_SLL2": "Linux cooked capture, version 2",
}


def link_types() -> str:
    """What captures may hold below TCP."""
    rows = [
        (str(number), f"`{name}`", _LINK_TYPES[name])
        for name, number in sorted(vars(link_layer).items(), key=lambda one: str(one[1]).zfill(9))
        if name.startswith("LINK_")
    ]
    return (
        "# Link types\n\nCaptures are pcap (micro- or nanoseconds, either byte order) or pcapng, plain or compressed "
        "with gzip or zstd. [The numbers](https://www.tcpdump.org/linktypes.html) are those of the files.\n\n"
        + table(("number", "name in the code", "what it is"), rows)
        + "\nBelow TCP there may be IPv4 or IPv6, in fragments, and inside IP in IP, GRE, ERSPAN, VXLAN, GENEVE, MPLS "
        "(IP, or Ethernet as a pseudowire) and PPPoE. For every other link type, `--via tshark` has tshark decode the "
        "packets.\n"
    )


def tables() -> str:
    """The tables of a lake, and their views."""
    schemas, views = _of_pipeline("schemas"), _of_pipeline("views")
    text = (
        "# Tables of a lake\n\nWhat [`amqpscope pipeline run`](commands.md#pipeline-run) writes, as Delta tables. "
        "`amqpscope pipeline tables` prints the same.\n"
    )
    for one in schemas.LAKE_TABLES.values():
        text += f"\n## {one.name}\n\n{escaped(one.meaning)}"
        text += ". Partitioned by `date` and `protocol`.\n\n" if one.partitioned else ".\n\n"
        rows = ((f"`{column.name}`", f"`{column.type}`", escaped(column.meaning)) for column in one.columns)
        text += table(("column", "type", "meaning"), rows)
    text += "\n## Views\n\nNames for a part of the rows of a table. A query can use them like tables.\n\n"
    text += table(
        ("view", "table", "condition", "meaning"),
        (
            (f"`{one.name}`", f"[{one.table}](#{one.table})", f"`{one.condition}`", escaped(one.meaning))
            for one in views.VIEWS.values()
        ),
    )
    return text


def _of_pipeline(name: str) -> ModuleType:
    """A module of the pipeline, from its file: the package around it needs Spark."""
    path = ROOT / "amqpscope" / "pipeline" / f"{name}.py"
    specification = importlib.util.spec_from_file_location(name, path)
    assert specification is not None and specification.loader is not None
    made = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(made)
    return made


# ---- the schemas ----------------------------------------------------------------------------------------


def schemas() -> str:
    """Every JSON Schema with its fields."""
    text = (
        "# JSON Schemas\n\nOf every object that a command writes (2020-12). The package has them, too: "
        '`amqpscope.schemas.schema("findings")`.\n\n'
    )
    text += table(
        ("object", "written by", "schema"),
        (
            (f"`amqpscope/{name}/1`", str(one["description"]), f"[{name}-1.json](schemas/{name}-1.json)")
            for name, one in SCHEMAS.items()
        ),
    )
    for name, one in COMMON.items():
        text += f"\n## {name}\n\n{one['description']}\n\n"
        rows = (
            (f"`{field}`", _type(part), part.get("description", ""))
            for field, part in one["properties"].items()
        )
        text += table(("field", "type", "meaning"), rows)
    return text


def _type(part: dict[str, Any]) -> str:
    """The type of a field in a few words."""
    if "anyOf" in part:
        return " or ".join(_type(one) for one in part["anyOf"])
    if "enum" in part:
        return " or ".join(f"`{word}`" for word in part["enum"])
    if "const" in part:
        return f"`{part['const']}`"
    if "$ref" in part:
        return part["$ref"].rpartition("/")[2]
    if part.get("type") == "array":
        return f"list of {_type(part['items'])}"
    if "properties" in part:
        return "{" + ", ".join(part["properties"]) + "}"
    return str(part.get("type", "anything"))


# ---- the Python API -------------------------------------------------------------------------------------


def api() -> str:
    """All names of `amqpscope`, by mkdocstrings."""
    import amqpscope

    text = "# Python API\n\nAll of it is in `amqpscope` itself. [Python](python.md) shows its use.\n"
    return text + "".join(f"\n::: amqpscope.{name}\n" for name in amqpscope.__all__)


# ---- development ----------------------------------------------------------------------------------------

_SECTIONS: Final = {
    "Where a line belongs": "architecture",
    "Rules of the code": "code",
    "Compiled code": "compiled-code",
    "A protocol": "protocol",
    "A form of report": "form",
    "A layer between TCP and AMQP": "layer",
    "A log of a client library": "layer",
    "A rule": "rule",
    "A diagnosis": "rule",
    "A habit of a product": "habit",
    "Fuzzing": "fuzzing",
    "Hostile captures": "hostile",
    "Many of one thing": "hostile",
    "Tests": "tests",
}


def development() -> dict[str, str]:
    """The sections of CONTRIBUTING.md, a page each."""
    first, *sections = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8").split("\n## ")
    pages = {"index": first + "\n"}
    for section in sections:
        title, _, text = section.partition("\n")
        name = _SECTIONS[title]
        pages[name] = f"{pages[name]}\n## {title}\n{text}\n" if name in pages else f"# {title}\n{text}\n"
    pages["architecture"] += (
        "\n## The layers\n\nA package imports only what stands below it. `lint-imports` holds "
    )
    pages["architecture"] += "this; the drawing is made from its contract.\n\n" + layers()
    return pages


def layers() -> str:
    """The contract of the layers as a drawing."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    rows = next(one["layers"] for one in contracts["contracts"] if one["type"] == "layers")
    width, height, drawn = 640, 34, ""
    for row, layer in enumerate(rows):
        names = [name.strip().removeprefix("amqpscope.") for name in layer.split("|")]
        each = width / len(names)
        for place, name in enumerate(names):
            x, y = place * each, row * (height + 6)
            drawn += f'<rect x="{x + 2:.0f}" y="{y + 2}" width="{each - 4:.0f}" height="{height}" rx="4"/>'
            drawn += f'<text x="{x + each / 2:.0f}" y="{y + 24}">{name}</text>'
    total = len(rows) * (height + 6) + 4
    return f'<svg class="layers" viewBox="0 0 {width} {total}" role="img" aria-label="The layers">{drawn}</svg>\n'
