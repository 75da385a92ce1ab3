"""Fragments and sections: how the parts of a message follow each other (sections 3.6.11, 3.8.9 and 4.2.1)."""

from typing import Final

from amqpscope.model.certainty import CERTAIN, POSSIBLE
from amqpscope.rules.amqp10_draft2011.case import CaseDraft2011
from amqpscope.rules.declaration import Rules
from amqpscope.tracking.amqp10_draft2011.sections import (
    FOOTER,
    HEADER,
    PROPERTIES,
    UNKNOWN,
    Progress,
    SectionFragment,
)
from dissectors.wire import i64

__all__ = ["judge_end", "judge_fragment"]

RULES: Final = Rules("amqp10_draft2011/fragments")

_NAMES: Final = ("header", "properties", "footer")


M_FRAG_ORDER: Final = RULES.rule(
    "M-FRAG-ORDER", "MUST", "keyword", by="sender", usual_answer="amqp:invalid-field"
)


def fragment_out_of_order(case: CaseDraft2011, progress: Progress, fragment: SectionFragment) -> None:
    """After a fragment of one section, a sender sends a fragment of an earlier section of the same message.

    Demands: Within a delivery, sections and their fragments must be sent in order.
    Source: AMQP 1.0, draft of 5 April 2011 (revision 1239M), section 3.6.11.2
    Evidence: the section-number of successive fragments of one delivery
    Why it matters: The receiver assembles the message in the order in which fragments arrive. The message
    that the receiver passes on differs from the message that was sent.
    Silent when: the capture lacks octets that were sent after the attach of the link, or when a
    section-number could not be read.
    How to mend it: Number the sections of a message from 0. Send all fragments of a section before the first
    fragment of the next section.
    """
    case.report(
        M_FRAG_ORDER,
        f"the sender sends a fragment of section {fragment.number} after a fragment of section "
        f"{progress.number}",
        CERTAIN,
        {"section_number": int(progress.number)},
    )


M_FRAG_CODE: Final = RULES.rule(
    "M-FRAG-CODE", "MUST", "keyword", by="sender", usual_answer="amqp:invalid-field"
)


def section_code_changed(case: CaseDraft2011, progress: Progress, fragment: SectionFragment) -> None:
    """A sender changes the section-code within a section.

    Demands: All fragments of one section must have the same section-code.
    Source: AMQP 1.0, draft of 5 April 2011 (revision 1239M), section 3.8.9
    Evidence: the section-code of fragments that have the same section-number
    Why it matters: The section-code says how the receiver has to read the octets of the section. If the
    section-code changes within a section, the receiver cannot tell which kind of section arrives.
    Silent when: the capture lacks octets that were sent after the attach of the link. The rule is also silent
    when a field of the fragment could not be read.
    How to mend it: Give all fragments of a section the section-code of its first fragment. If the format
    changes, begin a new section with the next section-number.
    """
    case.report(
        M_FRAG_CODE,
        f"section {fragment.number} had section-code {progress.code}, but now has section-code "
        f"{fragment.code}",
        CERTAIN,
        {"section_number": int(fragment.number), "section_code": int(progress.code)},
    )


M_FRAG_BOUNDS: Final = RULES.rule(
    "M-FRAG-BOUNDS", "MUST", "definition", by="sender", usual_answer="amqp:invalid-field"
)


def flags_against_the_numbers(case: CaseDraft2011, message: str, number: i64) -> None:
    """A sender sends a fragment whose flags `first` and `last` do not fit its section-number.

    Demands: The flag `first` may be true only in the fragment that begins a section. The flag `last` may be
    true only in the fragment that ends the section.
    Source: AMQP 1.0, draft of 5 April 2011 (revision 1239M), sections 3.6.11.2, 3.6.14 and 3.8.9
    Evidence: the flags `first` and `last` and the section-number of successive fragments of one delivery
    Why it matters: Only these flags show the receiver where a section begins and ends. With wrong flags, the
    receiver joins two sections or splits one section.
    Silent when: the capture lacks octets that were sent after the attach of the link. The rule is also silent
    when a flag is null, or when the delivery is resumed.
    How to mend it: Set the flag `first` in the first fragment of every section, and the flag `last` in the
    last fragment of the section. If a section is sent in a single fragment, set both flags in this fragment.
    Leave both flags unset in all fragments between the first and the last fragment of a section.
    """
    case.report(M_FRAG_BOUNDS, message, CERTAIN, {"section_number": int(number)})


M_FRAG_OFFSET: Final = RULES.rule(
    "M-FRAG-OFFSET", "MUST", "definition", by="sender", usual_answer="amqp:invalid-field"
)


def offset_that_does_not_follow(case: CaseDraft2011, fragment: SectionFragment, expected: i64) -> None:
    """A sender sends a fragment whose section-offset differs from the number of octets that were already sent
    of this section.

    Demands: The section-offset of a fragment must be the offset of the fragment's payload within the section.
    Source: AMQP 1.0, draft of 5 April 2011 (revision 1239M), sections 3.6.11.2 and 3.8.9
    Evidence: the section-offset and the payload sizes of successive fragments of one section
    Why it matters: The receiver uses the section-offset to report how much of the section it has received.
    With a wrong section-offset, a resumed transfer continues at the wrong octet.
    Silent when: the capture lacks octets that were sent after the attach of the link. The rule is also silent
    when a field of the fragment is null, or when the delivery is resumed.
    How to mend it: Begin each section with section-offset 0. The section-offset of each further fragment is
    the previous section-offset plus the payload size of the previous fragment.
    """
    case.report(
        M_FRAG_OFFSET,
        f"the fragment has section-offset {fragment.offset} instead of {expected}, the number of octets of "
        f"section {fragment.number} that were sent before",
        CERTAIN,
        {"section_offset": int(expected)},
    )


M_SECT_ORDER: Final = RULES.rule(
    "M-SECT-ORDER", "MUST", "keyword", by="sender", usual_answer="amqp:invalid-field"
)


def section_at_the_wrong_place(case: CaseDraft2011, name: str, why: str) -> None:
    """A sender sends a header, properties or footer section at a wrong place in the message.

    Demands: The header must be the first section, the properties must be the second section, and the footer
    must be the last section.
    Source: AMQP 1.0, draft of 5 April 2011 (revision 1239M), sections 4.2 and 4.2.1
    Evidence: the section-code and section-number of the fragments of one delivery
    Why it matters: A receiver expects the header first, the properties second and the footer last. If a
    section is at another place, the receiver may treat the section as application data or may not find it.
    Silent when: the capture lacks octets that were sent after the attach of the link. The rule is also silent
    when a field of the fragment could not be read. The rule is also silent when the message has a
    message-format other than 0. The rule does not report a missing section, because the draft contradicts
    itself about missing sections.
    Only possible because: The sender may have given a section-number to an earlier section without sending
    that section. In this case, the section of the finding is at the correct place.
    How to mend it: Send the sections in this order: header, properties, application data, footer.
    """
    case.report(M_SECT_ORDER, f"the {name} section {why}", POSSIBLE, {"section": name})


M_SECT_ONCE: Final = RULES.rule(
    "M-SECT-ONCE", "MUST", "definition", by="sender", usual_answer="amqp:invalid-field"
)


def section_sent_twice(case: CaseDraft2011, name: str) -> None:
    """A sender sends two header, two properties or two footer sections in one message.

    Demands: A message must not have more than one header, one properties and one footer section.
    Source: AMQP 1.0, draft of 5 April 2011 (revision 1239M), section 4.2
    Evidence: the section-code of the sections of one delivery
    Why it matters: The receiver cannot know which of the two sections applies. Durability, priority or the
    message-id may be lost.
    Silent when: the capture lacks octets that were sent after the attach of the link. The rule is also silent
    when a field of the fragment could not be read. The rule is also silent when the message has a
    message-format other than 0.
    How to mend it: Write the header, the properties and the footer at most once per message. Put all fields
    of the message's properties into one section.
    """
    case.report(M_SECT_ONCE, f"the message has a second {name} section", CERTAIN, {"section": name})


def judge_fragment(case: CaseDraft2011, progress: Progress, fragment: SectionFragment, plain: bool) -> None:
    """The rules about a fragment, beside what was sent of its delivery before.

    plain: the message has message-format 0, so that its section-codes are those of section 4.2.1.
    """
    if fragment.number == UNKNOWN:
        return
    begun = progress.number != UNKNOWN
    if begun and fragment.number < progress.number:
        fragment_out_of_order(case, progress, fragment)
        return
    same = begun and fragment.number == progress.number
    found = case.found
    if same and UNKNOWN not in (fragment.code, progress.code) and fragment.code != progress.code:
        section_code_changed(case, progress, fragment)
    if case.found == found and not progress.resumed:
        _judge_flags(case, progress, fragment, begun, same)
    if case.found == found and not progress.resumed:
        _judge_offset(case, progress, fragment, same)
    if case.found == found and plain and not same:
        _judge_section(case, progress, fragment, begun)


def judge_end(case: CaseDraft2011, progress: Progress) -> None:
    """The rule about the end of a message."""
    if progress.last == 0 and not progress.resumed:
        number = progress.number
        flags_against_the_numbers(
            case, f"the message ends, but no fragment of section {number} had the flag `last`", number
        )


def _judge_flags(
    case: CaseDraft2011, progress: Progress, fragment: SectionFragment, begun: bool, same: bool
) -> None:
    number = fragment.number
    if same and fragment.first == 1:
        flags_against_the_numbers(case, f"a second fragment of section {number} has the flag `first`", number)
    elif same and progress.last == 1:
        flags_against_the_numbers(
            case, f"section {number} continues after a fragment that has the flag `last`", number
        )
    elif not same and fragment.first == 0:
        flags_against_the_numbers(
            case, f"section {number} begins with a fragment without the flag `first`", number
        )
    elif begun and not same and progress.last == 0:
        flags_against_the_numbers(
            case,
            f"section {number} begins, but no fragment of section {progress.number} had the flag `last`",
            number,
        )


def _judge_offset(case: CaseDraft2011, progress: Progress, fragment: SectionFragment, same: bool) -> None:
    expected: i64 = 0
    if same:
        expected = progress.end
    if UNKNOWN not in (expected, fragment.offset) and fragment.offset != expected:
        offset_that_does_not_follow(case, fragment, expected)


def _judge_section(case: CaseDraft2011, progress: Progress, fragment: SectionFragment, begun: bool) -> None:
    code = fragment.code
    if HEADER <= code <= FOOTER and progress.has(code):
        section_sent_twice(case, _NAMES[code])
    elif code == HEADER and fragment.number > 0:
        section_at_the_wrong_place(case, "header", f"is section {fragment.number}, but must be section 0")
    elif code == PROPERTIES and fragment.number > 1:
        section_at_the_wrong_place(
            case, "properties", f"is section {fragment.number}, but must be section 0 or 1"
        )
    elif begun and progress.has(FOOTER):
        section_at_the_wrong_place(case, "footer", "is not the last section")
