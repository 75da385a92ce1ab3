"""Links that are attached again on a later connection of the same two containers.

A link is known by its name, its direction and the two containers. What its
sending end left unsettled on one connection is compared with how it attaches the link on the next one that
it does, if that began after the first was over: connections that overlap are another matter (a link is
stolen, not resumed).
"""

from collections.abc import Iterable

from amqpscope.model.finding import Finding
from amqpscope.rules.amqp10.resumption import judge_resumption
from amqpscope.tracking.amqp10.link_resume_state import LinkResumeState
from amqpscope.tracking.amqp10.summary import Amqp10Summary

__all__ = ["resumed"]


def resumed(summaries: Iterable[Amqp10Summary]) -> list[Finding]:
    """What is wrong with links that were attached again, of connections in the order of time."""
    findings: list[Finding] = []
    known: dict[tuple[str, str, str], tuple[Amqp10Summary, LinkResumeState]] = {}
    for summary in summaries:
        for direction in (0, 1):
            sender = summary.containers[direction]
            receiver = summary.containers[1 - direction]
            for account in summary.links[direction]:
                key = (sender, receiver, account.name)
                before = known.pop(key, None)
                whole = before is not None and before[0].whole and summary.whole
                if before is not None and whole and account.spot.time > before[0].ended:
                    finding = judge_resumption(
                        before[1], before[0].connection, before[0].ended, account, summary.connection
                    )
                    if finding is not None:
                        findings.append(finding)
                known[key] = (summary, account)
    return findings
