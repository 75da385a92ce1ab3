"""Composites and their fields: faults that the decoder proves (definitions in all parts)."""

from typing import Final

from amqpscope.rules.declaration import Rules

RULES: Final = Rules("amqp10/fields")


T_COMP_LIST: Final = RULES.rule(
    "T-COMP-LIST", "MUST", "definition", usual_answer="amqp:decode-error", proved="certain"
)
"""A peer sends a composite value that is not encoded as a list.

Demands: A composite value must be a described list. No other encoding is allowed.
Source: types.xml section composite-types > List Encoding
Evidence: the format code after the descriptor of the composite
Why it matters: The receiver identifies the fields of a composite by their positions in the list, and
other types have no such positions. The receiver may refuse the frame with amqp:decode-error.
Silent when: a part of the frame was not captured.
How to mend it: Encode every composite as its descriptor followed by a list (`0x45`, `0xc0` or `0xd0`) with
the fields in the order of the definition. Do not encode a composite as a map or an array.
"""


T_COMP_TYPE: Final = RULES.rule(
    "T-COMP-TYPE",
    "MUST",
    "definition",
    usual_answer="amqp:decode-error or amqp:invalid-field",
    proved="certain",
)
"""A peer sends a composite in which the type of a value differs from the declared type of its field.

Demands: Each element in the list of a composite must be null or must have the type that is declared for its
field.
Source: types.xml section composite-types > List Encoding
Evidence: the position, the declared type and the actual type of the field
Why it matters: The receiver can only refuse the frame or guess the meaning of the value.
Silent when: a part of the frame was not captured.
How to mend it: Encode each field with the type in its definition, for example as `symbol` and not as
`string`, or as `uint` and not as `int` or `ulong`. Check the field order, because a missing null shifts all
later fields.
"""


T_COMP_DESC: Final = RULES.rule(
    "T-COMP-DESC", "MUST", "definition", usual_answer="amqp:decode-error", proved="certain"
)
"""In a field that has to hold a composite, a peer sends a value whose descriptor belongs to no composite.

Demands: The descriptor of a composite must be one of two values from its definition: a symbol or a ulong.
Source: types.xml section composite-types
Evidence: the descriptor of the value
Why it matters: The descriptor alone identifies the type of the value. The receiver cannot interpret the field
and may refuse the frame with amqp:decode-error.
Silent when: a part of the frame was not captured. Another rule, F-BODY-PERF, reports a frame body with an
unknown descriptor. Another rule, T-COMP-TYPE, reports a value with the descriptor of another composite.
How to mend it: Use one of the two descriptors (a symbol or a ulong) from the definition of the composite.
Compare the descriptor in the encoder with the specification, for example `0x1d` for the composite `error`.
"""


T_COMP_EXTRA: Final = RULES.rule(
    "T-COMP-EXTRA",
    "MUST NOT",
    "inferred",
    warning="The specification implies the demand without stating the demand.",
    usual_answer="amqp:decode-error",
    proved="certain",
)
"""A peer sends a composite whose list has more elements than the composite has fields.

Demands: The list of a composite must not have elements after the last defined field.
Source: types.xml section composite-types > List Encoding
Evidence: the number of elements and the number of defined fields
Why it matters: The position of an element identifies its field. The receiver does not know the meaning of the
extra elements and may refuse the frame.
Silent when: a part of the frame was not captured.
How to mend it: Write only the fields of the definition, in the order of the definition. Send private data in
the properties or annotations of the frame or message, not as additional elements.
"""


T_COMP_MULT_ARRAY: Final = RULES.rule(
    "T-COMP-MULT-ARRAY", "MUST", "definition", usual_answer="amqp:decode-error", proved="certain"
)
"""A peer sends several values of a field in a list instead of an array.

Demands: Several values in a field that is defined as `multiple` must be an array of the field's type, never a
list.
Source: types.xml section composite-types
Evidence: the format code of the field's value
Why it matters: A receiver that expects an array may refuse the list, and then the connection or link is not
established.
Silent when: a part of the frame was not captured.
How to mend it: In a field that is defined as `multiple`, encode several values as an array (`0xe0` or `0xf0`)
whose element type is the type of the field. Encode a single value directly or as an array of one element.
"""


T_COMP_MULT_MAND: Final = RULES.rule(
    "T-COMP-MULT-MAND", "MUST", "keyword", usual_answer="amqp:invalid-field", proved="certain"
)
"""A peer sends an empty array in a field that is mandatory and may hold several values.

Demands: A field that is defined as both `multiple` and `mandatory` must have at least one value. In the final
specification, only the field sasl-server-mechanisms is both `multiple` and `mandatory`.
Source: types.xml section composite-types
Evidence: the value of the field (null, or an array without elements)
Why it matters: An empty array gives no more information than a missing field. The other peer has no value to
choose from, so SASL authentication cannot continue.
Silent when: a part of the frame was not captured, or when the field is missing. Another rule,
SA-MECH-NONEMPTY, reports a missing field, because sasl-server-mechanisms is the only field that is both
`multiple` and `mandatory`.
How to mend it: Send at least one mechanism in sasl-mechanisms. Check that the server's configuration enables
at least one SASL mechanism on this listener, for example ANONYMOUS or PLAIN.
"""


T_COMP_REQUIRES: Final = RULES.rule(
    "T-COMP-REQUIRES",
    "MUST",
    "definition",
    warning="A capture can suggest this fault but never prove it.",
    usual_answer="amqp:invalid-field",
    proved="possible",
)
"""A peer sends a value that is not of the kind (archetype) that its field requires, for example a `source` in
the field `target`.

Demands: A field that requires an archetype (for example `source`, `target`, `outcome`, `address`,
`message-id` or `txn-id`) may hold only values of types that provide this archetype.
Source: transport.xml section performatives; messaging.xml section addressing; amqp.dtd 'requires'/'provides'
Evidence: the descriptor or the primitive type of the value
Why it matters: The receiver finds, for example, a `source` in place of a `target`, or a value that is not an
outcome. The receiver cannot use the field and may refuse the frame.
Silent when: a part of the frame was not captured, or when the value has a descriptor that the specification
does not define.
Only possible because: The specification leaves room to read these octets as legal, or a newer
specification may define them.
How to mend it: If a field requires an archetype such as `source`, `target`, `outcome` or `delivery-state`,
send only a value whose type provides this archetype. Check the field order of the encoded list.
"""


T_FIELDS_KEY: Final = RULES.rule(
    "T-FIELDS-KEY", "MUST", "definition", usual_answer="amqp:decode-error", proved="certain"
)
"""A peer sends a map of the type `fields` with a key that is not a symbol.

Demands: Every key of a map of the type `fields` must be a symbol and not null. The properties of a
performative, the info of an error and the message-annotations of the outcome `modified` are maps of the type
`fields`.
Source: transport.xml section definitions > fields
Evidence: the types of the map's keys
Why it matters: The other peer looks up the entries by symbol. The other peer does not find the entry, or
refuses the frame with amqp:decode-error.
Silent when: a part of the frame was not captured.
How to mend it: Encode every key of a map of the type `fields` as a symbol, not as a string. The properties of
open, begin and attach and the info of an error are maps of the type `fields`. If you use a client library,
pass the keys of properties and of error info as symbols.
"""


P_OPEN_MAND: Final = RULES.rule(
    "P-OPEN-MAND",
    "MUST",
    "definition",
    usual_answer="amqp:invalid-field",
    layer="connection",
    proved="certain",
)
"""A peer sends an open without container-id.

Demands: An open must have a container-id.
Source: transport.xml section performatives > open
Evidence: the field container-id of each open
Why it matters: Link names are unique only for a pair of containers, so the other peer cannot identify
links. The other peer may close the connection with amqp:invalid-field.
Silent when: a part of the frame was not captured.
How to mend it: Set container-id in every open to a non-null string that identifies the container.
Generate a container-id if the application supplies none.
"""


P_BEGIN_MAND: Final = RULES.rule(
    "P-BEGIN-MAND", "MUST", "definition", usual_answer="amqp:invalid-field", layer="session", proved="certain"
)
"""A peer sends a begin without next-outgoing-id, incoming-window or outgoing-window.

Demands: A begin must have next-outgoing-id, incoming-window and outgoing-window.
Source: transport.xml section performatives > begin
Evidence: the fields next-outgoing-id, incoming-window and outgoing-window of each begin
Why it matters: Without next-outgoing-id, incoming-window and outgoing-window, the peers cannot count
transfers or apply flow control. The other peer may refuse the session with amqp:invalid-field.
Silent when: a part of the frame was not captured.
How to mend it: Send next-outgoing-id, incoming-window and outgoing-window in every begin as uint values.
Encode the number 0 explicitly and not as null.
"""


P_ATTACH_MAND: Final = RULES.rule(
    "P-ATTACH-MAND", "MUST", "definition", usual_answer="amqp:invalid-field", layer="link", proved="certain"
)
"""A peer sends an attach without the field `name`, `handle` or `role`.

Demands: An attach must have the fields `name`, `handle` and `role`.
Source: transport.xml section performatives > attach
Evidence: the fields `name`, `handle` and `role` of each attach
Why it matters: The other peer cannot distinguish the link from other links, or does not know the
direction of the link. The other peer may end the session.
Silent when: a part of the frame was not captured.
How to mend it: Send the fields `name`, `handle` and `role` in every attach. Encode handle 0 and role=false
(sender) explicitly and not as null.
"""


P_FLOW_MAND: Final = RULES.rule(
    "P-FLOW-MAND", "MUST", "definition", usual_answer="amqp:invalid-field", layer="session", proved="certain"
)
"""A peer sends a flow without incoming-window, next-outgoing-id or outgoing-window.

Demands: A flow must have incoming-window, next-outgoing-id and outgoing-window.
Source: transport.xml section performatives > flow
Evidence: the fields incoming-window, next-outgoing-id and outgoing-window of each flow
Why it matters: The other peer does not learn the state of the session. The other peer may keep a wrong
window, or end the session with amqp:invalid-field.
Silent when: a part of the frame was not captured.
How to mend it: Send incoming-window, next-outgoing-id and outgoing-window in every flow, also in a flow
that only grants link-credit. Encode the number 0 explicitly and not as null.
"""


P_TRANSFER_MAND: Final = RULES.rule(
    "P-TRANSFER-MAND",
    "MUST",
    "definition",
    by="sender",
    usual_answer="amqp:invalid-field",
    layer="delivery",
    proved="certain",
)
"""A sender sends a transfer without a handle.

Demands: A transfer must have a handle.
Source: transport.xml section performatives > transfer
Evidence: the field `handle` of each transfer
Why it matters: The receiver cannot assign the transfer to a link. The message is lost, and the receiver may
end the session with amqp:invalid-field.
Silent when: a part of the frame was not captured.
How to mend it: Send the handle in every transfer, also in continuation transfers of a delivery. Encode handle
0 explicitly and not as null.
"""


P_DISP_MAND: Final = RULES.rule(
    "P-DISP-MAND", "MUST", "definition", usual_answer="amqp:invalid-field", layer="delivery", proved="certain"
)
"""A peer sends a disposition without the field `role` or `first`.

Demands: A disposition must have the fields `role` and `first`.
Source: transport.xml section performatives > disposition
Evidence: the fields `role` and `first` of each disposition
Why it matters: The disposition does not show which deliveries it is about. The deliveries that the peer meant
stay unsettled, and the other peer may end the session.
Silent when: a part of the frame was not captured.
How to mend it: Send the fields `role` and `first` in every disposition. Encode role=false and delivery-id 0
explicitly and not as null.
"""


P_DETACH_MAND: Final = RULES.rule(
    "P-DETACH-MAND", "MUST", "definition", usual_answer="amqp:invalid-field", layer="link", proved="certain"
)
"""A peer sends a detach without a handle.

Demands: A detach must have a handle.
Source: transport.xml section performatives > detach
Evidence: the field `handle` of each detach
Why it matters: The detach does not show which link it is about. The link stays attached at the other peer, or
the other peer ends the session with amqp:invalid-field.
Silent when: a part of the frame was not captured.
How to mend it: Send the handle in every detach, also in the answer to a detach of the other peer. Encode
handle 0 explicitly and not as null.
"""


P_ERROR_MAND: Final = RULES.rule(
    "P-ERROR-MAND",
    "MUST",
    "definition",
    usual_answer="amqp:invalid-field",
    layer="connection",
    proved="certain",
)
"""A peer sends an error without a condition.

Demands: An error must have a condition.
Source: transport.xml section definitions > error
Evidence: the field `condition` of each error
Why it matters: The error shows that something failed, but not what failed. The other peer cannot decide
whether a retry makes sense.
Silent when: a part of the frame was not captured.
How to mend it: Set the field `condition` in every error to a symbol, for example `amqp:internal-error` if no
other condition fits. If there is no error, send null in the field `error`, not an empty error.
"""


P_RECEIVED_MAND: Final = RULES.rule(
    "P-RECEIVED-MAND",
    "MUST",
    "definition",
    usual_answer="amqp:invalid-field",
    layer="messaging",
    proved="certain",
)
"""A peer sends a delivery state `received` without section-number or section-offset.

Demands: The delivery state `received` must have section-number and section-offset.
Source: messaging.xml section delivery-state > received
Evidence: the fields section-number and section-offset of each delivery state `received`
Why it matters: A sender that resumes the delivery does not learn from which octet it has to continue. The
sender has to send the whole message again.
Silent when: a part of the frame was not captured.
How to mend it: Send section-number (uint) and section-offset (ulong) in every delivery state `received`.
Encode the number 0 explicitly and not as null.
"""


P_DECLARED_MAND: Final = RULES.rule(
    "P-DECLARED-MAND",
    "MUST",
    "definition",
    by="receiver",
    usual_answer="amqp:invalid-field",
    layer="transactions",
    proved="certain",
)
"""A coordinator sends an outcome `declared` without txn-id.

Demands: The outcome `declared` must have a txn-id.
Source: transactions.xml section coordination > declared
Evidence: the field txn-id of each outcome `declared`
Why it matters: The controller has no txn-id, so it cannot use or discharge the transaction.
Silent when: a part of the frame was not captured.
How to mend it: Set txn-id in every outcome `declared` to the binary id of the new transaction. If no
transaction can be created, answer the declare with the outcome `rejected` and an error.
"""


P_DISCHARGE_MAND: Final = RULES.rule(
    "P-DISCHARGE-MAND",
    "MUST",
    "definition",
    by="sender",
    usual_answer="amqp:invalid-field",
    layer="transactions",
    proved="certain",
)
"""A controller sends a discharge without txn-id.

Demands: A discharge must have a txn-id.
Source: transactions.xml section coordination > discharge
Evidence: the field txn-id of each discharge
Why it matters: The discharge ends no transaction. The work of the transaction is neither committed nor rolled
back until the control link closes.
Silent when: a part of the frame was not captured.
How to mend it: Set txn-id in every discharge to the txn-id of the outcome `declared`, both for commit and for
rollback. Send the discharge only after the outcome `declared` has arrived.
"""


P_TXSTATE_MAND: Final = RULES.rule(
    "P-TXSTATE-MAND",
    "MUST",
    "definition",
    usual_answer="amqp:invalid-field",
    layer="transactions",
    proved="certain",
)
"""A peer sends a transactional-state without txn-id.

Demands: A transactional-state must have a txn-id.
Source: transactions.xml section coordination > transactional-state
Evidence: the field txn-id of each transactional-state
Why it matters: The work belongs to no transaction, so a commit or rollback does not include it. The other
peer may refuse the frame.
Silent when: a part of the frame was not captured.
How to mend it: Set txn-id in every transactional-state to the txn-id of the outcome `declared`. For work
outside of transactions, send a plain delivery state instead of a transactional-state.
"""


P_SASLINIT_MAND: Final = RULES.rule(
    "P-SASLINIT-MAND", "MUST", "definition", by="client", layer="sasl", proved="certain"
)
"""A client sends a sasl-init without a mechanism.

Demands: A sasl-init must name a mechanism in the field `mechanism`, which is a symbol.
Source: security.xml section sasl > sasl-init
Evidence: the field `mechanism` of the sasl-init and the type of this field
Why it matters: The server does not know which SASL mechanism to use. Authentication cannot begin, and the
connection fails.
Silent when: a part of the frame was not captured.
How to mend it: Set the field `mechanism` of sasl-init to one of the symbols of the server's sasl-mechanisms.
Report an error to the application when no offered mechanism is usable, instead of sending null.
"""


P_SASLCHAL_MAND: Final = RULES.rule(
    "P-SASLCHAL-MAND", "MUST", "definition", by="server", layer="sasl", proved="certain"
)
"""A server sends a sasl-challenge whose field `challenge` is null or missing.

Demands: The field `challenge` of a sasl-challenge may be empty, but must not be null.
Source: security.xml section sasl > sasl-challenge
Evidence: the field `challenge` of each sasl-challenge
Why it matters: Without a challenge, the client has nothing to answer. Authentication stops, and the
connection fails.
Silent when: a part of the frame was not captured.
How to mend it: Set the field `challenge` of every sasl-challenge to the binary data that the SASL mechanism
produces. Encode an empty challenge as a binary of zero octets, not as null.
"""


P_SASLRESP_MAND: Final = RULES.rule(
    "P-SASLRESP-MAND", "MUST", "definition", by="client", layer="sasl", proved="certain"
)
"""A client sends a sasl-response whose field `response` is null or missing.

Demands: The field `response` of a sasl-response may be empty, but must not be null.
Source: security.xml section sasl > sasl-response
Evidence: the field `response` of each sasl-response
Why it matters: The server cannot continue authentication without a response, and the connection fails.
Silent when: a part of the frame was not captured.
How to mend it: Set the field `response` of every sasl-response to the binary data that the SASL mechanism
produces. Encode an empty response as a binary of zero octets, not as null.
"""


P_SASLOUT_MAND: Final = RULES.rule(
    "P-SASLOUT-MAND", "MUST", "definition", by="server", layer="sasl", proved="certain"
)
"""A server sends a sasl-outcome without a code.

Demands: A sasl-outcome must have a code.
Source: security.xml section sasl > sasl-outcome
Evidence: the field `code` of each sasl-outcome
Why it matters: The client does not learn whether it is authenticated, and may close the connection.
Silent when: a part of the frame was not captured.
How to mend it: Set the field `code` of every sasl-outcome, with the type `ubyte`. Encode code 0 (ok)
explicitly, and send neither null nor an empty list.
"""
