"""Reports of `amqpscope check`, read back as the programs read them that they are for."""

from __future__ import annotations

import json
import re
from collections import Counter
from typing import Any

# What any form tells of a finding: severity, whether it is certain, rule, peer, packet, capture, connection.
Told = tuple[str, bool, str, str, int, str, str]

_TITLE = re.compile(r"(possible )?(error|warning|note) (\S+) by the (\w+) in packet (\d+)\Z")


def told_by_objects(objects: list[dict[str, Any]]) -> Counter[Told]:
    """Findings as objects of JSON."""
    return Counter(
        (
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


def told_by_json(text: str) -> Counter[Told]:
    return told_by_objects(json.loads(text)["findings"])


def told_by_lines(text: str) -> Counter[Told]:
    return told_by_objects([json.loads(line) for line in text.splitlines()])


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


def told_by_github(text: str) -> Counter[Told]:
    told: Counter[Told] = Counter()
    for level, properties, message in commands(text):
        title = _TITLE.match(properties["title"])
        if title is None:
            continue
        possible, severity, rule, peer, packet = title.groups()
        weaker = "warning" if possible else "error"
        assert level == {"error": weaker, "warning": "warning", "note": "notice"}[severity]
        assert properties["line"] == packet
        connection = re.search(r" Connection (\S+)\.\Z", message)
        assert connection is not None
        told[(severity, not possible, rule, peer, int(packet), properties["file"], connection[1])] += 1
    return told
