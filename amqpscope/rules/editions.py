"""Which text a verdict follows: the final AMQP 1.0 of October 2011, one of two later drafts at OASIS, or the
earlier draft of April 2011.

The drafts csd01 (21 February 2012) and csprd02 (29 May 2012) contain only Part 3, Messaging. They clarify the
wording and change a few rules; the wire format is the same. For types, transport, transactions and security,
only the final text exists here, so findings about them always follow the final text. Rules judge by all texts
at once, and this module keeps the findings that hold under the chosen text.

The draft of April 2011 is a dialect with rules of its own: nobody chooses it here, its findings name it.
"""

from typing import Final

from amqpscope.errors import FilterError
from amqpscope.model.finding import Finding
from amqpscope.protocols import PROTOCOLS

__all__ = ["CSD01", "CSPRD02", "EDITIONS", "FINAL", "following", "known", "shown_in"]

FINAL: Final = "final"
CSD01: Final = "csd01"
CSPRD02: Final = "csprd02"
EDITIONS: Final = (FINAL, CSD01, CSPRD02)

# Rules that the drafts dropped.
_DROPPED: Final = ("amqp10/M-REJ-ANNOTATE",)

# The content-type that the final text demands for a body that is not data.
_WRAPPED: Final = ("message/x-amqp+data", "message/x-amqp+map", "message/x-amqp+list")


def known(edition: str) -> str:
    """The edition, if there is one of this name; else FilterError."""
    if edition not in EDITIONS:
        raise FilterError(f"spec {edition}: must be one of {', '.join(EDITIONS)}")
    return edition


def following(findings: list[Finding], edition: str) -> list[Finding]:
    """The findings that hold under the text of this edition; each finding learns which text it follows."""
    return [finding for finding in findings if _follows(finding, edition)]


def shown_in(name: str) -> str:
    """The edition under which a rule can be broken: the final one, unless only the drafts have the rule."""
    from amqpscope.rules.catalogue import rule

    return CSPRD02 if rule(name).basis == "csd-only" else FINAL


def _follows(finding: Finding, edition: str) -> bool:
    from amqpscope.rules.registry import declaration  # only where there are findings

    name = finding.rule
    protocol = PROTOCOLS.get(name.partition("/")[0])
    if protocol is not None and protocol.dialect:
        finding.assessment = finding.assessment.by_edition(protocol.dialect)
        return True
    if edition == FINAL:
        if name == "amqp10/M-CT-NONDATA":
            return str(finding.evidence.get("content_type", "")).lower() not in _WRAPPED
        # Only the drafts have it.
        declared = declaration(name)
        return declared is None or declared.basis != "csd-only"
    if name in _DROPPED:
        return False
    from amqpscope.rules.catalogue import editions  # brings the words of rules

    if (name, edition) in editions():
        finding.assessment = finding.assessment.by_edition(edition)
    if name == "amqp10/M-LIFETIME-VALUE" and finding.evidence.get("lifetime_policy") == "described value":
        # The drafts accept any type that provides lifetime-policy; an unknown type may provide it.
        finding.certain = False
    return True
