"""Findings about a configuration, explained like rules and notes."""

from amqpscope.policy.config_finding import REMARKS
from amqpscope.report.line import Line

__all__ = ["page_of_remark", "remark_lines", "remark_named"]


def remark_named(given: str) -> str:
    """The id of the named finding, in any case, with or without `config/`; "" if there is none."""
    wanted = given.strip().upper().removeprefix("CONFIG/")
    return next((rule for rule in REMARKS if rule.partition("/")[2] == wanted), "")


def remark_lines(rule: str) -> list[tuple[Line, int]]:
    """The text: lines, each with the columns before its continuation."""
    kind = REMARKS[rule]
    head: Line = [("rule", f"{rule}  "), ("dim", kind.severity), ("", ", about the configuration itself")]
    facts = [("rule", kind.text), ("matters", kind.matters)]
    return [(head, 2), *(([("key", f"  {label:<10}"), ("", text)], 12) for label, text in facts)]


def page_of_remark(rule: str, heading: str = "#") -> str:
    """The same as Markdown."""
    kind = REMARKS[rule]
    return f"{heading} {rule}\n\n- **Rule:** {kind.text}\n- **Why it matters:** {kind.matters}\n"
