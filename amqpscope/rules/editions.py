"""Which text a verdict follows: AMQP 1.0 final of October 2011, or one of two later drafts at OASIS.

csd01 (21 February 2012) and csprd02 (29 May 2012) are of Part 3, Messaging. They sharpen words and change a
few rules; the wire format is the same. Of types, transport, transactions and security only the final text is
known here: a finding about those follows it whatever was asked for. So rules judge by all texts at once, and
this settles what is left of their findings by one of them.
"""

from typing import Final

from amqpscope.errors import FilterError
from amqpscope.model.finding import Finding
from amqpscope.rules.catalogue import editions, rule

__all__ = ["CSD01", "CSPRD02", "EDITIONS", "FINAL", "following", "known", "shown_in"]

FINAL: Final = "final"
CSD01: Final = "csd01"
CSPRD02: Final = "csprd02"
EDITIONS: Final = (FINAL, CSD01, CSPRD02)

# What the drafts dropped.
_DROPPED: Final = ("amqp10/M-REJ-ANNOTATE",)

# What the final text asks for as content-type of a body that is not data.
_WRAPPED: Final = ("message/x-amqp+data", "message/x-amqp+map", "message/x-amqp+list")


def known(edition: str) -> str:
    """The edition, if there is one of the name; else FilterError."""
    if edition not in EDITIONS:
        raise FilterError(f"spec {edition}: must be one of {', '.join(EDITIONS)}")
    return edition


def following(findings: list[Finding], edition: str) -> list[Finding]:
    """Those of the findings that are some by this edition's text; each is told which text it follows."""
    return [finding for finding in findings if _follows(finding, edition)]


def shown_in(name: str) -> str:
    """The edition by which a rule can be broken: the final one, unless only the drafts have it."""
    return CSPRD02 if rule(name).basis == "csd-only" else FINAL


def _follows(finding: Finding, edition: str) -> bool:
    name = finding.rule
    if edition == FINAL:
        if name == "amqp10/M-CT-NONDATA":
            return str(finding.evidence.get("content_type", "")).lower() not in _WRAPPED
        # Only the drafts have it.
        return rule(name).basis != "csd-only"
    if name in _DROPPED:
        return False
    if (name, edition) in editions():
        finding.assessment = finding.assessment.by_edition(edition)
    if name == "amqp10/M-LIFETIME-VALUE" and finding.evidence.get("lifetime_policy") == "described value":
        # The drafts take any type that provides lifetime-policy; an unknown one may.
        finding.certain = False
    return True
