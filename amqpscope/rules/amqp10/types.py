"""Types and mandatory fields: what decoding a value proves (types.xml; the definitions of the composites).

Each function is told by the dissector where the octets break its rule.
"""

from collections.abc import Callable

from amqpscope.rules.amqp10.case import Case
from amqpscope.rules.amqp10.proof import proved
from dissectors.interface import Problem
from dissectors.wire import i64

__all__ = ["PROBLEMS", "serial_number_that_wraps_elsewhere"]


def value_with_unassigned_format_code(case: Case, problem: Problem) -> None:
    """A value begins with a format code that the specification does not assign.

    Why it matters: its type is unknown, and with it all that the value means.
    Silent when: the frame was not captured whole.
    """
    proved(case, "amqp10/T-CODE-UNKNOWN", problem)


def value_with_extended_format_code(case: Case, problem: Problem) -> None:
    """A value begins with an extended format code, of which none is assigned.

    Why it matters: nobody can say what follows it.
    Silent when: the frame was not captured whole.
    """
    proved(case, "amqp10/T-CODE-EXT", problem)


def descriptor_without_value(case: Case, problem: Problem) -> None:
    """A described value lacks its descriptor, or the value behind it.

    Why it matters: half of the value is missing; what follows is taken for it.
    Silent when: the frame was not captured whole.
    """
    proved(case, "amqp10/T-DESC-CTOR", problem)


def descriptor_of_a_reserved_type(case: Case, problem: Problem) -> None:
    """A descriptor is neither symbol nor ulong.

    Why it matters: other types are reserved for it; a receiver does not find its type by it.
    Silent when: the frame was not captured whole. The descriptor of a frame's body or of a message's section
    is judged by rules of its own.
    """
    proved(case, "amqp10/T-DESC-RESERVED", problem)


def private_descriptor_in_the_domain_of_the_specification(case: Case, problem: Problem) -> None:
    """A numeric descriptor has no domain (its upper 32 bits are zero), and no specification assigns it.

    Why it matters: the next specification may give it to another type. A private one needs the owner's
    enterprise number as its domain.
    Silent when: the frame was not captured whole.
    Only possible because: A specification that is not known here may have assigned it.
    """
    proved(case, "amqp10/T-DESC-DOMAIN0", problem)


def symbolic_descriptor_without_domain(case: Case, problem: Problem) -> None:
    """A symbolic descriptor is not of the form domain, colon, name.

    Why it matters: without a domain two vendors' types can have the same descriptor.
    Silent when: the frame was not captured whole.
    """
    proved(case, "amqp10/T-DESC-SYMFORM", problem)


def value_larger_than_its_surroundings(case: Case, problem: Problem) -> None:
    """A value claims more octets than are left where it stands.

    Why it matters: it is cut off, and everything behind it is lost.
    Silent when: the frame was not captured whole.
    """
    proved(case, "amqp10/T-SIZE-OVERRUN", problem)


def boolean_neither_0_nor_1(case: Case, problem: Problem) -> None:
    """A boolean of one octet is neither 0x00 nor 0x01.

    Why it matters: some take it for true, some for an error.
    Silent when: the frame was not captured whole.
    """
    proved(case, "amqp10/T-BOOL-OCTET", problem)


def char_outside_unicode(case: Case, problem: Problem) -> None:
    """A char is no Unicode scalar value.

    Why it matters: it cannot be shown or stored as text.
    Silent when: the frame was not captured whole.
    """
    proved(case, "amqp10/T-CHAR-UTF32", problem)


def uuid_of_another_layout(case: Case, problem: Problem) -> None:
    """A uuid has a variant or a version that RFC 4122 does not have.

    Why it matters: mostly its first octets stand in the order of the machine, as a Windows GUID has them; its
    receiver reads another uuid than the one that was meant.
    Silent when: the frame was not captured whole, or the octets pass by chance.
    Only possible because: Sixteen octets at random are a uuid to some.
    """
    proved(case, "amqp10/T-UUID-4122", problem)


def string_not_in_utf8(case: Case, problem: Problem) -> None:
    """A string is not UTF-8.

    Why it matters: a receiver can only refuse it, or change it.
    Silent when: the frame was not captured whole.
    """
    proved(case, "amqp10/T-STR-UTF8", problem)


def string_with_byte_order_mark(case: Case, problem: Problem) -> None:
    """A string begins with a byte order mark.

    Why it matters: it becomes a part of the name or text, and comparisons fail.
    Silent when: the frame was not captured whole.
    """
    proved(case, "amqp10/T-STR-NOBOM", problem)


def string_in_utf16(case: Case, problem: Problem) -> None:
    """A string is encoded in UTF-16, which only the draft of 2011 had.

    Why it matters: a peer of the final version cannot read it.
    Silent when: the frame was not captured whole.
    """
    proved(case, "amqp10/T-STR-NO-UTF16", problem)


def symbol_not_in_ascii(case: Case, problem: Problem) -> None:
    """A symbol has an octet above 0x7f.

    Why it matters: symbols are names from registries; no registered one has such octets.
    Silent when: the frame was not captured whole.
    """
    proved(case, "amqp10/T-SYM-ASCII", problem)


def list_that_does_not_fit_its_size(case: Case, problem: Problem) -> None:
    """A list's count of items does not use up its size, or exceeds it.

    Why it matters: count and size disagree; one of them leads a reader astray.
    Silent when: the frame was not captured whole.
    """
    proved(case, "amqp10/T-LIST-FIT", problem)


def map_that_does_not_fit_its_size(case: Case, problem: Problem) -> None:
    """A map's count of items does not use up its size, or exceeds it.

    Why it matters: count and size disagree; one of them leads a reader astray.
    Silent when: the frame was not captured whole.
    """
    proved(case, "amqp10/T-MAP-FIT", problem)


def map_with_key_without_value(case: Case, problem: Problem) -> None:
    """A map counts an odd number of items.

    Why it matters: the last key has no value.
    Silent when: the frame was not captured whole.
    """
    proved(case, "amqp10/T-MAP-EVEN", problem)


def map_with_the_same_key_twice(case: Case, problem: Problem) -> None:
    """A map has the same key twice.

    Why it matters: which of the values holds is left to chance.
    Silent when: the frame was not captured whole. Keys that are compound values are not compared.
    """
    proved(case, "amqp10/T-MAP-DUPKEY", problem)


def array_that_does_not_fit_its_size(case: Case, problem: Problem) -> None:
    """An array's elements do not use up its size, or exceed it.

    Why it matters: count and size disagree; one of them leads a reader astray.
    Silent when: the frame was not captured whole.
    """
    proved(case, "amqp10/T-ARR-FIT", problem)


def array_without_element_constructor(case: Case, problem: Problem) -> None:
    """An array has no element constructor.

    Why it matters: also an array of no elements says of which type they would be.
    Silent when: the frame was not captured whole.
    """
    proved(case, "amqp10/T-ARR-CTOR", problem)


def composite_that_is_no_list(case: Case, problem: Problem) -> None:
    """A composite value is encoded as something else than a list.

    Why it matters: its fields cannot be told.
    Silent when: the frame was not captured whole.
    """
    proved(case, "amqp10/T-COMP-LIST", problem)


def field_of_another_type(case: Case, problem: Problem) -> None:
    """A field of a composite has a value of another type than its own.

    Why it matters: a receiver can only refuse it, or guess.
    Silent when: the frame was not captured whole.
    """
    proved(case, "amqp10/T-COMP-TYPE", problem)


def composite_with_another_descriptor(case: Case, problem: Problem) -> None:
    """Where a field is to hold a composite stands a value with a descriptor that is not the composite's.

    Why it matters: the descriptor alone says what the value is.
    Silent when: the frame was not captured whole. A frame's body with an unknown descriptor is found by
    F-BODY-PERF, one with the descriptor of another composite by T-COMP-TYPE.
    """
    proved(case, "amqp10/T-COMP-DESC", problem)


def composite_with_too_many_fields(case: Case, problem: Problem) -> None:
    """A composite has more elements than its definition has fields.

    Why it matters: positions say which field is which; nobody knows what these are.
    Silent when: the frame was not captured whole.
    """
    proved(case, "amqp10/T-COMP-EXTRA", problem)


def several_values_not_in_an_array(case: Case, problem: Problem) -> None:
    """Several values of a field stand in a list instead of an array.

    Why it matters: a receiver that expects an array refuses the frame.
    Silent when: the frame was not captured whole.
    """
    proved(case, "amqp10/T-COMP-MULT-ARRAY", problem)


def mandatory_field_of_several_values_with_none(case: Case, problem: Problem) -> None:
    """A field that is mandatory, and may hold several values, holds an array of none.

    Why it matters: it says no more than a field that is missing: nothing can be chosen from it.
    Silent when: the frame was not captured whole. If the field is missing altogether: SA-MECH-NONEMPTY, for
    the mechanisms of a server are the only such field there is.
    """
    proved(case, "amqp10/T-COMP-MULT-MAND", problem)


def serial_number_that_wraps_elsewhere(case: Case, value: int, last: int, certainty: i64) -> None:
    """A delivery-id wraps, and not at 2^32 to 0.

    Why it matters: ids are compared as serial numbers of 32 bits (RFC 1982); a receiver takes the next ones
    for old, or waits for those that were left out.
    Silent when: octets since the session's begin were not captured. Possible when an id is only left out.
    Possible because: An id is left out, none is used twice; the text can be read as allowing that.
    """
    case.report(
        "amqp10/T-SERIAL",
        f"delivery-id {value} follows {last}: ids wrap from 4294967295 to 0",
        certainty,
        {"last_delivery_id": last},
    )


def field_value_that_does_not_provide_its_archetype(case: Case, problem: Problem) -> None:
    """A field's value is of a type that cannot stand there.

    Why it matters: a source where a target is due, or an outcome that is none.
    Silent when: the frame was not captured whole. A descriptor that is not the specification's is never
    accused.
    Only possible because: These octets can also be read as legal: the text leaves room, or a newer one
    defines them.
    """
    proved(case, "amqp10/T-COMP-REQUIRES", problem)


def fields_map_with_key_that_is_no_symbol(case: Case, problem: Problem) -> None:
    """A map of fields has a key that is no symbol.

    Why it matters: nobody will find the entry.
    Silent when: the frame was not captured whole.
    """
    proved(case, "amqp10/T-FIELDS-KEY", problem)


def unknown_sender_settle_mode(case: Case, problem: Problem) -> None:
    """snd-settle-mode is none of unsettled, settled, mixed.

    Why it matters: when deliveries are settled is not agreed.
    Silent when: the frame was not captured whole.
    """
    proved(case, "amqp10/T-ENUM-SNDMODE", problem)


def unknown_receiver_settle_mode(case: Case, problem: Problem) -> None:
    """rcv-settle-mode is neither first nor second.

    Why it matters: who settles first is not agreed.
    Silent when: the frame was not captured whole.
    """
    proved(case, "amqp10/T-ENUM-RCVMODE", problem)


def unknown_terminus_durability(case: Case, problem: Problem) -> None:
    """The durability of a source or target is none of the three.

    Why it matters: what survives a restart is not agreed.
    Silent when: the frame was not captured whole.
    """
    proved(case, "amqp10/T-ENUM-DURABILITY", problem)


def unknown_terminus_expiry_policy(case: Case, problem: Problem) -> None:
    """The expiry-policy of a source or target is none of the four.

    Why it matters: when the terminus goes is not agreed.
    Silent when: the frame was not captured whole.
    """
    proved(case, "amqp10/T-ENUM-EXPIRY", problem)


def unknown_sasl_code(case: Case, problem: Problem) -> None:
    """The code of a SASL outcome is none of the five.

    Why it matters: whether the client is authenticated is open.
    Silent when: the frame was not captured whole.
    """
    proved(case, "amqp10/T-ENUM-SASLCODE", problem)


def open_without_mandatory_field(case: Case, problem: Problem) -> None:
    """open lacks container-id.

    Why it matters: links are named within the two containers.
    Silent when: the frame was not captured whole.
    """
    proved(case, "amqp10/P-OPEN-MAND", problem)


def begin_without_mandatory_field(case: Case, problem: Problem) -> None:
    """begin lacks next-outgoing-id, incoming-window or outgoing-window.

    Why it matters: without them no transfer can be counted.
    Silent when: the frame was not captured whole.
    """
    proved(case, "amqp10/P-BEGIN-MAND", problem)


def attach_without_mandatory_field(case: Case, problem: Problem) -> None:
    """attach lacks name, handle or role.

    Why it matters: the link cannot be told from others, or has no direction.
    Silent when: the frame was not captured whole.
    """
    proved(case, "amqp10/P-ATTACH-MAND", problem)


def flow_without_mandatory_field(case: Case, problem: Problem) -> None:
    """flow lacks incoming-window, next-outgoing-id or outgoing-window.

    Why it matters: the session's state stays unknown.
    Silent when: the frame was not captured whole.
    """
    proved(case, "amqp10/P-FLOW-MAND", problem)


def transfer_without_mandatory_field(case: Case, problem: Problem) -> None:
    """transfer lacks handle.

    Why it matters: it belongs to no link.
    Silent when: the frame was not captured whole.
    """
    proved(case, "amqp10/P-TRANSFER-MAND", problem)


def disposition_without_mandatory_field(case: Case, problem: Problem) -> None:
    """disposition lacks role or first.

    Why it matters: it names no deliveries.
    Silent when: the frame was not captured whole.
    """
    proved(case, "amqp10/P-DISP-MAND", problem)


def detach_without_mandatory_field(case: Case, problem: Problem) -> None:
    """detach lacks handle.

    Why it matters: it names no link.
    Silent when: the frame was not captured whole.
    """
    proved(case, "amqp10/P-DETACH-MAND", problem)


def error_without_mandatory_field(case: Case, problem: Problem) -> None:
    """An error lacks condition.

    Why it matters: it says that something failed and not what.
    Silent when: the frame was not captured whole.
    """
    proved(case, "amqp10/P-ERROR-MAND", problem)


def received_state_without_mandatory_field(case: Case, problem: Problem) -> None:
    """A received state lacks section-number or section-offset.

    Why it matters: a resuming sender does not learn from where to go on.
    Silent when: the frame was not captured whole.
    """
    proved(case, "amqp10/P-RECEIVED-MAND", problem)


def declared_outcome_without_mandatory_field(case: Case, problem: Problem) -> None:
    """A declared outcome lacks txn-id.

    Why it matters: the transaction cannot be used.
    Silent when: the frame was not captured whole.
    """
    proved(case, "amqp10/P-DECLARED-MAND", problem)


def discharge_without_mandatory_field(case: Case, problem: Problem) -> None:
    """discharge lacks txn-id.

    Why it matters: it ends no transaction.
    Silent when: the frame was not captured whole.
    """
    proved(case, "amqp10/P-DISCHARGE-MAND", problem)


def transactional_state_without_mandatory_field(case: Case, problem: Problem) -> None:
    """A transactional-state lacks txn-id.

    Why it matters: the work belongs to no transaction.
    Silent when: the frame was not captured whole.
    """
    proved(case, "amqp10/P-TXSTATE-MAND", problem)


def sasl_init_without_mandatory_field(case: Case, problem: Problem) -> None:
    """A sasl-init lacks mechanism.

    Why it matters: the exchange cannot begin.
    Silent when: the frame was not captured whole.
    """
    proved(case, "amqp10/P-SASLINIT-MAND", problem)


def sasl_challenge_without_mandatory_field(case: Case, problem: Problem) -> None:
    """A sasl-challenge lacks challenge.

    Why it matters: the client cannot answer.
    Silent when: the frame was not captured whole.
    """
    proved(case, "amqp10/P-SASLCHAL-MAND", problem)


def sasl_response_without_mandatory_field(case: Case, problem: Problem) -> None:
    """A sasl-response lacks response.

    Why it matters: the server cannot go on.
    Silent when: the frame was not captured whole.
    """
    proved(case, "amqp10/P-SASLRESP-MAND", problem)


def sasl_outcome_without_mandatory_field(case: Case, problem: Problem) -> None:
    """A sasl-outcome lacks code.

    Why it matters: the client does not learn whether it is authenticated.
    Silent when: the frame was not captured whole.
    """
    proved(case, "amqp10/P-SASLOUT-MAND", problem)


# What the dissector's problems break, by their code.
PROBLEMS: dict[str, Callable[[Case, Problem], None]] = {
    "T-CODE-UNKNOWN": value_with_unassigned_format_code,
    "T-CODE-EXT": value_with_extended_format_code,
    "T-DESC-CTOR": descriptor_without_value,
    "T-DESC-RESERVED": descriptor_of_a_reserved_type,
    "T-DESC-DOMAIN0": private_descriptor_in_the_domain_of_the_specification,
    "T-DESC-SYMFORM": symbolic_descriptor_without_domain,
    "T-SIZE-OVERRUN": value_larger_than_its_surroundings,
    "T-BOOL-OCTET": boolean_neither_0_nor_1,
    "T-CHAR-UTF32": char_outside_unicode,
    "T-UUID-4122": uuid_of_another_layout,
    "T-STR-UTF8": string_not_in_utf8,
    "T-STR-NOBOM": string_with_byte_order_mark,
    "T-STR-NO-UTF16": string_in_utf16,
    "T-SYM-ASCII": symbol_not_in_ascii,
    "T-LIST-FIT": list_that_does_not_fit_its_size,
    "T-MAP-FIT": map_that_does_not_fit_its_size,
    "T-MAP-EVEN": map_with_key_without_value,
    "T-MAP-DUPKEY": map_with_the_same_key_twice,
    "T-ARR-FIT": array_that_does_not_fit_its_size,
    "T-ARR-CTOR": array_without_element_constructor,
    "T-COMP-LIST": composite_that_is_no_list,
    "T-COMP-TYPE": field_of_another_type,
    "T-COMP-DESC": composite_with_another_descriptor,
    "T-COMP-EXTRA": composite_with_too_many_fields,
    "T-COMP-MULT-MAND": mandatory_field_of_several_values_with_none,
    "T-COMP-MULT-ARRAY": several_values_not_in_an_array,
    "T-COMP-REQUIRES": field_value_that_does_not_provide_its_archetype,
    "T-FIELDS-KEY": fields_map_with_key_that_is_no_symbol,
    "T-ENUM-SNDMODE": unknown_sender_settle_mode,
    "T-ENUM-RCVMODE": unknown_receiver_settle_mode,
    "T-ENUM-DURABILITY": unknown_terminus_durability,
    "T-ENUM-EXPIRY": unknown_terminus_expiry_policy,
    "T-ENUM-SASLCODE": unknown_sasl_code,
    "P-OPEN-MAND": open_without_mandatory_field,
    "P-BEGIN-MAND": begin_without_mandatory_field,
    "P-ATTACH-MAND": attach_without_mandatory_field,
    "P-FLOW-MAND": flow_without_mandatory_field,
    "P-TRANSFER-MAND": transfer_without_mandatory_field,
    "P-DISP-MAND": disposition_without_mandatory_field,
    "P-DETACH-MAND": detach_without_mandatory_field,
    "P-ERROR-MAND": error_without_mandatory_field,
    "P-RECEIVED-MAND": received_state_without_mandatory_field,
    "P-DECLARED-MAND": declared_outcome_without_mandatory_field,
    "P-DISCHARGE-MAND": discharge_without_mandatory_field,
    "P-TXSTATE-MAND": transactional_state_without_mandatory_field,
    "P-SASLINIT-MAND": sasl_init_without_mandatory_field,
    "P-SASLCHAL-MAND": sasl_challenge_without_mandatory_field,
    "P-SASLRESP-MAND": sasl_response_without_mandatory_field,
    "P-SASLOUT-MAND": sasl_outcome_without_mandatory_field,
}

RULES: dict[str, Callable[..., None]] = {
    **{"amqp10/" + code: rule for code, rule in PROBLEMS.items()},
    "amqp10/T-SERIAL": serial_number_that_wraps_elsewhere,
}
