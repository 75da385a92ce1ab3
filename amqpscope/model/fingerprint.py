"""By what a finding is known again in another run, and in another report."""

from amqpscope.model.finding import Finding
from amqpscope.model.volatile import mask_numbers

__all__ = ["fingerprint"]


def fingerprint(finding: Finding) -> str:
    """Sixteen hex digits that stay the same over ports, times, packet numbers and made up names."""
    what = "|".join(
        (
            finding.rule,
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
