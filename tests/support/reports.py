"""Reports of `amqpscope check`, read back as the programs read them that they are for."""

from __future__ import annotations

import functools
import json
import os
import re
import urllib.parse
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lxml import etree
from markdown_it import MarkdownIt

if TYPE_CHECKING:
    import jsonschema

# What any form tells of a finding: severity, whether it is certain, rule, peer, packet, capture, connection.
Reported = tuple[str, bool, str, str, int, str, str]

_TITLE = re.compile(r"(possible )?(error|warning|note) (\S+) by the (\w+) in packet (\d+)\Z")
# What is said of a configuration: severity, rule, file and line.
_REMARK = re.compile(r"(error|warning|note) (config/\S+) in (.+?), line (\d+): entry \d+ of the allow-list")
_TITLE_OF_LINE = re.compile(r"(possible )?(error|warning|note) (\S+) by the (\w+) in packet (\d+): ")


def reported_by_objects(objects: list[dict[str, Any]]) -> Counter[Reported]:
    """Findings as objects of JSON."""
    return Counter(
        remark(one["severity"], one["rule"], one["evidence"]["file"], one["evidence"]["line"])
        if one["rule"].startswith("config/")
        else (
            one["severity"],
            one["certainty"] == "certain",
            one["rule"],
            one["peer"],
            one["packet"],
            one["capture"],
            one["connection"],
        )
        for one in objects
    )


def remark(severity: str, rule: str, file: str, line: int | str) -> Reported:
    """What is said of a line of a configuration, as if that were a packet of no connection."""
    return (severity, True, rule, "", int(line), file, "")


def reported_by_json(text: str) -> Counter[Reported]:
    return reported_by_objects(json.loads(text)["findings"])


def reported_by_lines(text: str) -> Counter[Reported]:
    return reported_by_objects([json.loads(line) for line in text.splitlines()])


def commands(text: str) -> list[tuple[str, dict[str, str], str]]:
    """Workflow commands: name, properties and text of each, as GitHub's runner takes them apart."""
    found = []
    for line in text.split("\n"):
        # Not splitlines: the runner knows no other line ends, and no space before a command is needed.
        if not line.lstrip().startswith("::"):
            assert "##[" not in line
            continue
        head, _, text = line.lstrip()[2:].partition("::")
        name, _, rest = head.partition(" ")
        properties = dict(part.split("=", 1) for part in rest.split(",") if part)
        for key, value in properties.items():
            value = value.replace("%3A", ":").replace("%2C", ",")
            properties[key] = _unescaped(value)
        found.append((name, properties, _unescaped(text)))
    return found


def _unescaped(text: str) -> str:
    return text.replace("%0D", "\r").replace("%0A", "\n").replace("%25", "%")


def reported_by_github(text: str) -> Counter[Reported]:
    reported: Counter[Reported] = Counter()
    for level, properties, message in commands(text):
        title = _TITLE.match(properties["title"])
        if title is None:
            severity, _, rule = properties["title"].partition(" ")
            if rule.startswith("config/"):
                reported[remark(severity, rule, properties["file"], properties["line"])] += 1
            continue
        possible, severity, rule, peer, packet = title.groups()
        weaker = "warning" if possible else "error"
        assert level == {"error": weaker, "warning": "warning", "note": "notice"}[severity]
        assert properties["line"] == packet
        connection = re.search(r" Connection (\S+)\.\Z", message)
        assert connection is not None
        reported[(severity, not possible, rule, peer, int(packet), properties["file"], connection[1])] += 1
    return reported


@functools.cache
def _sarif_schema() -> jsonschema.Draft7Validator:
    """The schema of OASIS (see schemas/README.md)."""
    import jsonschema  # only what looks at SARIF needs it

    schema = json.loads((Path(__file__).parent / "schemas" / "sarif-schema-2.1.0.json").read_text())
    return jsonschema.Draft7Validator(schema)


def sarif_run(text: str) -> dict[str, Any]:
    """The run of a SARIF log, which is held to the schema and to what GitHub asks for beyond it."""
    assert text.isascii()
    log = json.loads(text)
    assert [error.message for error in _sarif_schema().iter_errors(log)] == []
    (run,) = log["runs"]
    rules = run["tool"]["driver"]["rules"]
    assert len({one["id"] for one in rules}) == len(rules)
    for one in rules:
        assert one["shortDescription"]["text"] and one["fullDescription"]["text"] and one["help"]["text"]
    seen = set()
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        (location,) = result["locations"]
        physical = location["physicalLocation"]
        assert physical["region"]["startLine"] > 0
        known_by = (sarif_path(physical), result["partialFingerprints"]["primaryLocationLineHash"])
        assert known_by not in seen
        seen.add(known_by)
        for message in [result["message"], *(one["message"] for one in result.get("relatedLocations", []))]:
            sarif_text(message)
    return run


def sarif_path(physical: dict[str, Any]) -> str:
    """The file that a location names."""
    artifact = physical["artifactLocation"]
    uri = artifact["uri"]
    assert re.fullmatch(r"(file:///)?([A-Za-z0-9_.~/-]|%[0-9A-F]{2})*", uri)
    if uri.startswith("file://"):
        assert "uriBaseId" not in artifact
        uri = uri.removeprefix("file://")
    else:
        assert artifact["uriBaseId"] == "%SRCROOT%"
        assert not uri.startswith(("/", "../"))
    return os.fsdecode(urllib.parse.unquote_to_bytes(uri))


def sarif_text(message: dict[str, str]) -> str:
    """What a viewer shows of a message: no links, no placeholders."""
    text = message["text"]
    assert text.isprintable()
    assert re.search(r"(?<!\\)\[[^\]]*(?<!\\)\]\(", text) is None
    without = text.replace("{{", "").replace("}}", "")
    assert "{" not in without and "}" not in without
    return text.replace("\\[", "[").replace("\\]", "]").replace("{{", "{").replace("}}", "}")


def reported_by_sarif(text: str) -> Counter[Reported]:
    reported: Counter[Reported] = Counter()
    for result in sarif_run(text)["results"]:
        properties = result["properties"]
        location = result["locations"][0]
        packet = location["physicalLocation"]["region"]["startLine"]
        if result["ruleId"].startswith("diag/"):
            continue
        if result["ruleId"].startswith("config/"):
            path = sarif_path(location["physicalLocation"])
            reported[remark(result["level"], result["ruleId"], path, packet)] += 1
            continue
        possible = properties["certainty"] == "possible"
        assert result["level"] == (
            "warning" if possible and properties["severity"] == "error" else properties["severity"]
        )
        (logical,) = location["logicalLocations"]
        assert logical["fullyQualifiedName"] == f"{properties['connection']}/packet {packet}"
        one = (
            properties["severity"],
            not possible,
            result["ruleId"],
            properties["peer"],
            packet,
            sarif_path(location["physicalLocation"]),
            properties["connection"],
        )
        reported[one] += 1
    return reported


@functools.cache
def _junit_schema() -> etree.XMLSchema:
    """What Jenkins takes (see schemas/README.md)."""
    return etree.XMLSchema(etree.parse(Path(__file__).parent / "schemas" / "junit-10.xsd"))


def junit_suites(text: str) -> list[etree._Element]:
    """The suites of a JUnit report, which is held to the schema and to its own counts."""
    assert text.isascii()
    root = etree.fromstring(text.encode(), etree.XMLParser(resolve_entities=False))
    _junit_schema().assertValid(root)
    for element in root.iter():
        assert all(line.isprintable() for line in (element.text or "").split("\n"))
        assert all(value.isprintable() for value in element.attrib.values())
    suites = list(root)
    for tag, name in (("failure", "failures"), ("error", "errors"), ("testcase", "tests")):
        for suite in suites:
            assert int(suite.get(name)) == len(list(suite.iter(tag)))
        assert int(root.get(name)) == sum(int(suite.get(name)) for suite in suites)
    return suites


def reported_by_junit(text: str) -> Counter[Reported]:
    reported: Counter[Reported] = Counter()
    for suite in junit_suites(text):
        assert len({case.get("name") for case in suite.iter("testcase")}) == len(list(suite.iter("testcase")))
        for case in suite.iter("testcase"):
            for result in case:
                lines = (result.text or "").split("\n")
                said = _REMARK.match(lines[0])
                if said is not None:
                    assert suite.get("name") == said[3]
                    reported[remark(said[1], said[2], said[3], said[4])] += 1
                    continue
                connection = re.match(r"Connection (\S+)", lines[0])
                heads = [_TITLE_OF_LINE.match(line) for line in lines]
                for head in heads:
                    if head is None:
                        continue
                    assert connection is not None
                    possible, severity, rule, peer, packet = head.groups()
                    assert case.get("name").endswith(f": {rule} by the {peer}")
                    place = (suite.get("name"), connection[1])
                    reported[(severity, not possible, rule, peer, int(packet), *place)] += 1
    return reported


# Block and inline tokens that our Markdown has; no text of a peer may bring others.
_OURS = {"heading", "paragraph", "bullet_list", "list_item", "table", "thead", "tbody", "tr", "th", "td"}
_INLINE = {"text", "code_inline", "link_open", "link_close"}
_LINKED = (
    "https://docs.oasis-open.org/amqp",
    "https://www.rabbitmq.com/",
    "https://www.rfc-editor.org/rfc/",
)


def markdown_blocks(text: str) -> list[tuple[str, str]]:
    """Kind and text of each heading, paragraph and cell, as a reader of Markdown (with tables) has it."""
    found = []
    kind = ""
    for token in MarkdownIt("commonmark").enable("table").parse(text):
        if token.type == "inline":
            assert {child.type for child in token.children or []} <= _INLINE
            for child in token.children or []:
                # What GitHub makes links, mentions and the like of is not in plain text.
                if child.type == "link_open":
                    assert str(child.attrs["href"]).startswith(_LINKED)
                if child.type == "text":
                    assert not re.search(r"[@#$|`<>\\\[\]*_~]|://|www\.", child.content)
            found.append((kind, "".join(child.content for child in token.children or [])))
        else:
            kind, _, way = token.type.rpartition("_")
            assert kind in _OURS and way in ("open", "close"), token
    return found


def reported_by_markdown(text: str) -> Counter[Reported]:
    reported: Counter[Reported] = Counter()
    capture = connection = ""
    cells: list[str] = []
    for kind, content in markdown_blocks(text):
        if kind == "heading":
            capture = content
        elif kind == "paragraph":
            named = re.match(r"Connection \d+, (\S+)\Z", content)
            connection = connection if named is None else named[1]
            said = _REMARK.match(content)
            if said is not None:
                reported[remark(said[1], said[2], said[3], said[4])] += 1
        elif kind == "td":
            cells.append(content)
            if len(cells) == 4:
                severity, _, rule = cells[0].rpartition(" ")
                possible = severity.startswith("possible ")
                severity = severity.removeprefix("possible ")
                reported[(severity, not possible, rule, cells[1], int(cells[2]), capture, connection)] += 1
                cells = []
    assert not cells
    return reported
