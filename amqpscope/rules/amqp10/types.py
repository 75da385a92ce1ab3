"""Types: faults that the decoder proves (types.xml).

The dissector says where the octets break a rule; most rules need nothing more.
"""

from typing import Final

from amqpscope.rules.amqp10.case import Case10
from amqpscope.rules.declaration import Rules
from dissectors.wire import i64

__all__ = ["serial_number_that_wraps_elsewhere"]

RULES: Final = Rules("amqp10/types")


T_CODE_UNKNOWN: Final = RULES.rule(
    "T-CODE-UNKNOWN", "MUST", "definition", usual_answer="amqp:decode-error", proved="certain"
)
"""A peer sends a value that begins with a format code that the specification does not assign.

Demands: Every constructor must start with 0x00 or with a format code that the specification assigns to a
primitive type.
Source: types.xml section encodings > Constructor BNF, List of Encodings
Evidence: the format code, and its offset in the frame
Why it matters: The receiver does not know the type or the length of the value. The receiver cannot decode
the frame and may close the connection with amqp:decode-error.
Silent when: a part of the frame was not captured.
How to mend it: Use only the format codes of the encoding table. If the encoder is correct, check that the
value before the unknown format code has as many octets as its size says. Check also that no two threads write
to the same buffer.
"""


T_CODE_EXT: Final = RULES.rule(
    "T-CODE-EXT", "MUST", "definition", usual_answer="amqp:decode-error", proved="certain"
)
"""A peer sends a value that begins with an extended format code, although the specification assigns no
extended format codes.

Demands: A format code whose low nibble is 0xF must be followed by an extension octet. The specification
assigns no format code whose low nibble is 0xF, so no such code may appear.
Source: types.xml section encodings (bit layout)
Evidence: a format code 0x4F, 0x5F, ... or 0xFF, and the octet after the code
Why it matters: The receiver does not know what follows the format code. The receiver cannot decode the frame
and may close the connection with amqp:decode-error.
Silent when: a part of the frame was not captured.
How to mend it: Remove format codes whose low nibble is `0xF` from the encoder. Check also that the value
before the extended format code has as many octets as its size says.
"""


T_DESC_CTOR: Final = RULES.rule(
    "T-DESC-CTOR", "MUST", "definition", usual_answer="amqp:decode-error", proved="certain"
)
"""A peer sends a described value in which the descriptor or the value after the descriptor is missing.

Demands: In a described value, the octet 0x00 must be followed by one complete descriptor and then by
another constructor, which may itself be described.
Source: types.xml section encodings > Constructor BNF
Evidence: the octets of the described value
Why it matters: A part of the described value is missing. The receiver reads the next octets as the missing
part, or refuses the frame.
Silent when: a part of the frame was not captured.
How to mend it: Write after `0x00` one complete descriptor (symbol or ulong) and then one complete value with
its own constructor. Write an empty list (`0x45`) when a described list has no fields.
"""


T_DESC_RESERVED: Final = RULES.rule(
    "T-DESC-RESERVED", "SHOULD NOT", "wording", usual_answer="amqp:decode-error", proved="certain"
)
"""A peer sends a descriptor that is neither a symbol nor a ulong.

Demands: A descriptor should be a symbol or a ulong. Descriptors of other types are reserved.
Source: types.xml section types > Descriptor Values
Evidence: the type of the descriptor
Why it matters: The specification reserves descriptors of other types. The receiver cannot identify the
described type and may refuse the value.
Silent when: a part of the frame was not captured. Separate rules judge the descriptor of a frame body or
of a message section.
How to mend it: Encode every descriptor as a symbol or a ulong. If the application passes a descriptor as a
string, uint or int, convert the descriptor to a symbol or a ulong before you encode it.
"""


T_DESC_DOMAIN0: Final = RULES.rule(
    "T-DESC-DOMAIN0",
    "MUST NOT",
    "wording",
    warning="A capture can suggest this fault but never prove it.",
    usual_answer="amqp:not-implemented",
    proved="possible",
)
"""A peer sends a numeric descriptor that no specification assigns, although its upper 32 bits (the domain)
are zero.

Demands: Numeric descriptors whose upper 32 bits are zero belong to the AMQP specification, so private types
must use a domain of their own.
Source: types.xml section types > Descriptor Values
Evidence: an unknown ulong descriptor whose upper 32 bits are zero
Why it matters: A later AMQP specification may assign the same descriptor to another type. The receiver would
then decode the value as a value of that other type.
Silent when: a part of the frame was not captured.
Only possible because: A specification that this rule does not know may define the descriptor.
How to mend it: For a private type, put the enterprise number of the owner of the type into the upper 32 bits
of the ulong descriptor. Alternatively, use a symbolic descriptor with a domain of your own.
"""


T_DESC_SYMFORM: Final = RULES.rule(
    "T-DESC-SYMFORM",
    "MAY-limits",
    "definition",
    warning="The specification permits the behaviour only within limits, and the peer exceeds these limits.",
    usual_answer="amqp:decode-error",
    proved="certain",
)
"""A peer sends a symbolic descriptor that does not have the form `domain:name`.

Demands: A symbolic descriptor must have the form `domain:name`.
Source: types.xml section types > Descriptor Values
Evidence: the text of the symbolic descriptor
Why it matters: Without a domain, the types of two vendors can have the same descriptor. The receiver may then
decode a value as the wrong type.
Silent when: a part of the frame was not captured.
How to mend it: Write symbolic descriptors as `domain:name`, with a domain that belongs to the owner of the
type, for example `com.example:my-filter`.
"""


T_SIZE_OVERRUN: Final = RULES.rule(
    "T-SIZE-OVERRUN", "MUST", "definition", usual_answer="amqp:decode-error", proved="certain"
)
"""A peer sends a value whose size exceeds the octets that are left in the enclosing value, section or
frame body.

Demands: The size of a value must not exceed the octets that are left in the enclosing value, section or frame
body.
Source: types.xml section encodings
Evidence: the size of the value and the octets that are left (for message data, the octets of the whole
delivery)
Why it matters: The receiver gets a value that is cut off. The receiver cannot decode the rest of the
frame or message and may close the connection.
Silent when: a part of the frame was not captured.
How to mend it: Encode the content of a value first, and then compute the size from the octets that were
actually written. Count octets, not characters, in strings. Do not cut off octets of an encoded frame.
"""


T_BOOL_OCTET: Final = RULES.rule(
    "T-BOOL-OCTET", "MUST", "definition", usual_answer="amqp:decode-error", proved="certain"
)
"""A peer sends a boolean with format code `0x56` whose data octet is neither `0x00` nor `0x01`.

Demands: The data octet of a boolean with format code 0x56 must be 0x00 or 0x01.
Source: types.xml section encodings > boolean
Evidence: the octet after the format code 0x56
Why it matters: Some receivers read the value as true, and other receivers refuse the frame with
amqp:decode-error.
Silent when: a part of the frame was not captured.
How to mend it: Write `0x01` for true and `0x00` for false, or use the format codes `0x41` and `0x42`. Do not
copy an integer of the program, such as 255, into the data octet.
"""


T_CHAR_UTF32: Final = RULES.rule(
    "T-CHAR-UTF32", "MUST", "definition", usual_answer="amqp:decode-error", proved="certain"
)
"""A peer sends a char that is not a Unicode scalar value.

Demands: A char must be one Unicode scalar value in UTF-32BE. Values above 0x10FFFF and surrogates are
invalid.
Source: types.xml section encodings > char
Evidence: the four octets of the char
Why it matters: The receiver cannot display the char or store it as text, and may refuse the frame with
amqp:decode-error.
Silent when: a part of the frame was not captured.
How to mend it: Encode a char as one Unicode code point in UTF-32BE, at most `0x10FFFF`. Combine the two
UTF-16 surrogates of a character into one code point before encoding.
"""


T_UUID_4122: Final = RULES.rule(
    "T-UUID-4122",
    "MUST",
    "definition",
    warning="A capture can suggest this fault but never prove it.",
    proved="possible",
)
"""A peer sends a uuid that does not have the variant of RFC 4122 or that has an undefined version.

Demands: A uuid must have the octet layout of RFC 4122, section 4.1.2.
Source: types.xml section encodings > uuid
Evidence: the 16 octets of the uuid
Why it matters: In most cases, this fault means that the first fields of the uuid are in little-endian order,
as in a Windows GUID. The receiver then reads another uuid than the sender meant.
Silent when: a part of the frame was not captured, or when the octets have a valid variant and version by
chance.
Only possible because: Some implementations use sixteen random octets as a uuid.
How to mend it: Write the fields of a uuid in network byte order (RFC 4122, section 4.1.2). Before you encode
a GUID whose first three fields are little-endian, convert these fields to big-endian order. Set variant and
version in the uuids that you generate.
"""


T_STR_UTF8: Final = RULES.rule(
    "T-STR-UTF8", "MUST", "definition", usual_answer="amqp:decode-error", proved="certain"
)
"""A peer sends a string that is not well-formed UTF-8.

Demands: A string must be well-formed UTF-8.
Source: types.xml section encodings > string
Evidence: the octets that are not UTF-8
Why it matters: The receiver can only refuse the string or change it. The receiver may close the
connection with amqp:decode-error.
Silent when: a part of the frame was not captured.
How to mend it: Encode every string as UTF-8. Convert text in other encodings to UTF-8 before you send it.
Send arbitrary octets as binary, and never cut a string in the middle of a character.
"""


T_STR_NOBOM: Final = RULES.rule(
    "T-STR-NOBOM", "MUST NOT", "definition", usual_answer="amqp:decode-error", proved="certain"
)
"""A peer sends a string that begins with a byte order mark.

Demands: A string must not have a byte order mark.
Source: types.xml section encodings > string
Evidence: the octets EF BB BF at the start of the string
Why it matters: The byte order mark becomes part of the name or text. Comparisons of addresses and names
then fail although both texts look the same.
Silent when: a part of the frame was not captured.
How to mend it: Encode strings as UTF-8 without a byte order mark. Strip the octets `EF BB BF` from text
that was read from files before you use the text as a string.
"""


T_STR_NO_UTF16: Final = RULES.rule(
    "T-STR-NO-UTF16", "MUST NOT", "definition", usual_answer="amqp:decode-error", proved="certain"
)
"""A peer sends a string encoded in UTF-16, which only the draft of April 2011 allowed.

Demands: The final specification has no strings in UTF-16, so the format codes 0xa2 and 0xb2 must not appear.
Source: types.xml section encodings > string
Evidence: the format code 0xa2 or 0xb2
Why it matters: A peer that implements the final AMQP 1.0 specification cannot decode the value and may close
the connection with amqp:decode-error.
Silent when: a part of the frame was not captured.
How to mend it: Encode strings as UTF-8 with the format codes `0xa1` (str8) and `0xb1` (str32). Remove the
codes `0xa2` and `0xb2` from the encoder.
"""


T_SYM_ASCII: Final = RULES.rule(
    "T-SYM-ASCII", "MUST", "definition", usual_answer="amqp:decode-error", proved="certain"
)
"""A peer sends a symbol that contains an octet above `0x7F`.

Demands: A symbol may consist of 7-bit ASCII only.
Source: types.xml section encodings > symbol
Evidence: an octet above 0x7F in the symbol
Why it matters: Symbols are names from registries, and no registered name contains an octet above 0x7F. The
receiver does not recognize the symbol and may refuse the frame.
Silent when: a part of the frame was not captured.
How to mend it: Use only 7-bit ASCII in symbols. If applications pass text as a capability, property key or
annotation key, check that the text is ASCII. Send all other text as a string.
"""


T_LIST_FIT: Final = RULES.rule(
    "T-LIST-FIT", "MUST", "definition", usual_answer="amqp:decode-error", proved="certain"
)
"""A peer sends a list whose items use fewer or more octets than the size field of the list says.

Demands: The items of a list must use exactly the number of octets that the size field of the list says. This
size includes the count field.
Source: types.xml section encodings > Compound, list
Evidence: the size and count of the list, and the octets of its items
Why it matters: The size and the count of the list contradict each other. Receivers that follow the size and
receivers that follow the count decode different values.
Silent when: a part of the frame was not captured.
How to mend it: Fill in the size and the count of a list after you have written its items. The size includes
the octets of the count field. Do not write a fixed count if you leave out trailing fields.
"""


T_MAP_FIT: Final = RULES.rule(
    "T-MAP-FIT", "MUST", "definition", usual_answer="amqp:decode-error", proved="certain"
)
"""A peer sends a map whose items use fewer or more octets than the size field of the map says.

Demands: The items of a map must use exactly the number of octets that the size field of the map says. This
size includes the count field.
Source: types.xml section encodings > Compound, map
Evidence: the size and count of the map, and the octets of its items
Why it matters: The size and the count of the map contradict each other. Receivers that follow the size and
receivers that follow the count decode different values.
Silent when: a part of the frame was not captured.
How to mend it: Fill in the size and the count of a map after you have written its entries. The size includes
the octets of the count field. The count of a map is the number of keys plus the number of values.
"""


T_MAP_EVEN: Final = RULES.rule(
    "T-MAP-EVEN", "MUST", "lower-case", usual_answer="amqp:decode-error", proved="certain"
)
"""A peer sends a map with an odd count of items.

Demands: The item count of a map must be even, because keys and values alternate.
Source: types.xml section encodings > map
Evidence: an odd count in a map
Why it matters: The last key of the map has no value. The receiver cannot decode the map and may close the
connection with amqp:decode-error.
Silent when: a part of the frame was not captured.
How to mend it: Write keys and values in pairs, and set the count of the map to twice the number of entries.
Write an explicit null for an entry without a value.
"""


T_MAP_DUPKEY: Final = RULES.rule(
    "T-MAP-DUPKEY", "MUST NOT", "wording", usual_answer="amqp:decode-error", proved="certain"
)
"""A peer sends a map that contains the same key twice.

Demands: A map must not have the same key twice.
Source: types.xml section encodings > map
Evidence: two keys of the same AMQP type and value, in any encoding width
Why it matters: Some receivers use the first value of a duplicate key and other receivers use the second
value, so an annotation or property may get the wrong value.
Silent when: a part of the frame was not captured, or when the equal keys are compound values.
How to mend it: Collect the entries in a map before encoding, and replace the value of an existing key instead
of appending a second entry. Two integer keys of equal type and value are the same key in every encoding
width.
"""


T_ARR_FIT: Final = RULES.rule(
    "T-ARR-FIT", "MUST", "definition", usual_answer="amqp:decode-error", proved="certain"
)
"""A peer sends an array whose elements use fewer or more octets than the size field of the array says.

Demands: An array must have a size, a count and one element constructor. After the element constructor, the
array must have as many elements as its count says, and must end exactly where its size says.
Source: types.xml section encodings > Array
Evidence: the size and count of the array, and the octets of its elements
Why it matters: The size and the count of the array contradict each other. Receivers that follow the size and
receivers that follow the count decode different values.
Silent when: a part of the frame was not captured.
How to mend it: Fill in the size and the count of an array after you have written its elements. The size
includes the count field and the element constructor. Write one constructor for all elements, and no
constructor before an individual element.
"""


T_ARR_CTOR: Final = RULES.rule(
    "T-ARR-CTOR", "MUST", "definition", usual_answer="amqp:decode-error", proved="certain"
)
"""A peer sends an array without an element constructor.

Demands: An array must have one constructor before its elements, even if its count is zero. The elements of an
array carry data only, without constructors of their own.
Source: types.xml section encodings > Array
Evidence: the octets after the size and the count of the array
Why it matters: Even an empty array has to give the type of its elements. The receiver cannot decode the array
and may refuse the frame.
Silent when: a part of the frame was not captured.
How to mend it: In every array, write the element constructor after the size and the count, also when the
count is zero. Send null instead of an empty array where the field allows null.
"""


T_SERIAL: Final = RULES.rule("T-SERIAL", "MUST", "definition", usual_answer="amqp:invalid-field")


def serial_number_that_wraps_elsewhere(case: Case10, value: int, last: int, certainty: i64) -> None:
    """The delivery-ids of a sender do not wrap around from 4294967295 (2^32 - 1) to 0, but at another number.

    Demands: Delivery-ids, transfer-ids and delivery-counts wrap around to 0 at 2^32, so peers must compare
    them as serial numbers (RFC 1982).
    Source: transport.xml section definitions > sequence-no
    Evidence: successive delivery-ids near the wrap-around
    Why it matters: Receivers compare delivery-ids as serial numbers of 32 bits (RFC 1982). After a wrong
    wrap-around, a receiver treats the next delivery-ids as old, or waits for the missing delivery-ids.
    Silent when: the capture lacks octets that were sent after the session's begin. The finding is reported as
    possible, not as certain, when the sender only leaves out a delivery-id.
    Possible because: The sender leaves out a delivery-id but uses no delivery-id twice. The specification can
    be read as allowing gaps between delivery-ids.
    How to mend it: Keep delivery-ids in an unsigned 32-bit integer that wraps around from 4294967295 to 0. Do
    not use a signed integer, do not skip 0, and do not wrap around one value too early.
    """
    case.report(
        T_SERIAL,
        f"delivery-id {value} follows delivery-id {last}, but delivery-ids wrap around from 4294967295 to 0",
        certainty,
        {"last_delivery_id": last},
    )


T_ENUM_SNDMODE: Final = RULES.rule(
    "T-ENUM-SNDMODE", "MUST", "definition", usual_answer="amqp:invalid-field", proved="certain"
)
"""A peer sends an attach whose snd-settle-mode is not `unsettled` (0), `settled` (1) or `mixed` (2).

Demands: The snd-settle-mode of an attach must be 0, 1 or 2.
Source: transport.xml section definitions > sender-settle-mode
Evidence: the snd-settle-mode of the attach
Why it matters: The peers do not agree whether the sender settles its deliveries when it sends them. The other
peer may refuse the attach with amqp:invalid-field.
Silent when: a part of the frame was not captured.
How to mend it: Set snd-settle-mode to 0, 1 or 2, encoded as a ubyte. For the default `mixed`, the field may
be null.
"""


T_ENUM_RCVMODE: Final = RULES.rule(
    "T-ENUM-RCVMODE", "MUST", "definition", usual_answer="amqp:invalid-field", proved="certain"
)
"""A peer sends an rcv-settle-mode that is neither `first` (0) nor `second` (1).

Demands: The rcv-settle-mode of an attach or transfer must be 0 or 1.
Source: transport.xml section definitions > receiver-settle-mode
Evidence: the rcv-settle-mode of the attach or transfer
Why it matters: The peers do not agree which peer settles a delivery first. The other peer may refuse the
frame with amqp:invalid-field.
Silent when: a part of the frame was not captured.
How to mend it: Set rcv-settle-mode in attach and transfer to 0 or 1, encoded as a ubyte, or leave the field
null.
"""


T_ENUM_DURABILITY: Final = RULES.rule(
    "T-ENUM-DURABILITY", "MUST", "definition", usual_answer="amqp:invalid-field", proved="certain"
)
"""A peer sends a source or target whose field `durable` is not `none` (0), `configuration` (1) or
`unsettled-state` (2).

Demands: The field `durable` of a source or target must be 0, 1 or 2.
Source: messaging.xml section addressing > terminus-durability
Evidence: the field `durable` of the source or target
Why it matters: The peers do not agree which state of the terminus survives a restart. The other peer may
refuse the attach with amqp:invalid-field.
Silent when: a part of the frame was not captured.
How to mend it: Set the field `durable` of source and target to 0, 1 or 2, encoded as a uint. Do not send a
boolean or a delivery mode in the field `durable`.
"""


T_ENUM_EXPIRY: Final = RULES.rule(
    "T-ENUM-EXPIRY", "MUST", "definition", usual_answer="amqp:invalid-field", proved="certain"
)
"""A peer sends a source or target whose expiry-policy is not `link-detach`, `session-end`, `connection-close`
or `never`.

Demands: The expiry-policy of a source or target must be `link-detach`, `session-end`, `connection-close` or
`never`.
Source: messaging.xml section addressing > terminus-expiry-policy
Evidence: the expiry-policy of the source or target
Why it matters: The peers do not agree on the time at which the terminus expires. A subscription may be lost
too early or be kept for ever.
Silent when: a part of the frame was not captured.
How to mend it: Set expiry-policy to exactly one of the symbols `link-detach`, `session-end`,
`connection-close` or `never`. For the default `session-end`, the field may be null.
"""


T_ENUM_SASLCODE: Final = RULES.rule("T-ENUM-SASLCODE", "MUST", "definition", by="server", proved="certain")
"""A server sends a sasl-outcome whose code is not one of the five defined codes 0 to 4.

Demands: The code of a sasl-outcome must be 0, 1, 2, 3 or 4.
Source: security.xml section sasl > sasl-code
Evidence: the code of the sasl-outcome
Why it matters: The client cannot decide whether it is authenticated, and may close the connection.
Silent when: a part of the frame was not captured.
How to mend it: Set the code of the sasl-outcome to 0 (ok), 1 (auth), 2 (sys), 3 (sys-perm) or 4 (sys-temp),
encoded as a ubyte. Map internal error codes of the authentication backend to the five codes of sasl-outcome.
"""
