"""By what a finding is known again in another run, and in another report."""

from amqpscope.model.finding import Finding
from amqpscope.model.volatile import mask_numbers
from amqpscope.rules.declaration import DECLARED

__all__ = ["fingerprint"]


def fingerprint(finding: Finding) -> str:
    """Sixteen hex digits that stay the same over ports, times, packet numbers, made up names, and over new
    names of the rule.
    """
    declared = DECLARED.get(finding.rule)
    what = "|".join(
        (
            finding.rule if declared is None else declared.first_name(),
            finding.peer,
            finding.frame,
            str(finding.session),
            mask_numbers(finding.link),
            finding.link_sender,
            ",".join(sorted(finding.evidence)),
        )
    )
    import hashlib  # ten milliseconds, which commands without findings need not wait for

    return hashlib.sha256(what.encode("utf-8", "backslashreplace")).hexdigest()[:16]
