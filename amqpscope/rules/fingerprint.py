"""The fingerprint by which a finding is recognized in another run, and in another report."""

from amqpscope.model.finding import Finding
from amqpscope.model.volatile import mask_numbers
from amqpscope.rules.declaration import DECLARED

__all__ = ["fingerprint"]


def fingerprint(finding: Finding) -> str:
    """Sixteen hex digits that do not depend on ports, times, packet numbers, generated names, or a new name
    of the rule.
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
    import hashlib  # the import takes ten milliseconds, which commands without findings do not need

    return hashlib.sha256(what.encode("utf-8", "backslashreplace")).hexdigest()[:16]
