"""Types and mandatory fields: one wrong value in a frame that is otherwise right."""

from __future__ import annotations

from collections.abc import Callable

from scenarios.pairs import SAME, SILENT, add_pair, legal, pair, reported
from support import amqp10_encode as amqp
from support.amqp10_encode import raw
from support.dialogue import RECEIVER, SENDER, Dialogue, Said

Words = Callable[[Dialogue], Said]


# ---- values, as an entry of the open's properties --------------------------------------------------------

# Rule: a wrong value, and one as near to it as possible.
VALUES: dict[str, tuple[bytes, bytes]] = {
    "T-CODE-UNKNOWN": (raw("57 00"), raw("50 00")),
    "T-CODE-EXT": (raw("5f 00 00"), raw("50 00")),
    "T-BOOL-OCTET": (raw("56 02"), raw("56 01")),
    "T-CHAR-UTF32": (raw("73 00 00 d8 00"), raw("73 00 00 d7 ff")),
    "T-STR-UTF8": (raw("a1 02 c3 28"), raw("a1 02 c3 a9")),
    "T-STR-NOBOM": (raw("a1 04 ef bb bf 61"), raw("a1 03 e2 82 ac")),
    "T-STR-NO-UTF16": (raw("a2 02 00 61"), raw("a1 02 61 61")),
    "T-SYM-ASCII": (raw("a3 02 c3 a9"), raw("a3 02 61 61")),
    "T-LIST-FIT": (raw("c0 03 01 41 42"), raw("c0 03 02 41 42")),
    "T-MAP-FIT": (raw("c1 04 02 41 42 42"), raw("c1 03 02 41 42")),
    "T-MAP-EVEN": (raw("c1 02 01 41"), raw("c1 03 02 41 42")),
    "T-MAP-DUPKEY": (raw("c1 07 04 50 01 41 50 01 42"), raw("c1 07 04 50 01 41 50 02 42")),
    "T-ARR-FIT": (raw("e0 04 01 50 01 02"), raw("e0 04 02 50 01 02")),
    "T-ARR-CTOR": (raw("e0 01 00"), raw("e0 02 00 50")),
    "T-DESC-RESERVED": (raw("00 52 24 40"), raw("00 53 24 45")),
    "T-DESC-SYMFORM": (raw("00 a3 03 65 61 6e 40"), raw("00 a3 05 65 78 3a 61 6e 40")),
}
# Faults with which a frame is found again in the middle of a stream.
FOUND_AGAIN = ("T-DESC-RESERVED", "T-DESC-SYMFORM", "T-DESC-DOMAIN0", "T-UUID-4122")
# Those that no capture can prove.
ARGUABLE: dict[str, tuple[bytes, bytes]] = {
    "T-DESC-DOMAIN0": (raw("00 80 00 00 00 00 00 00 03 00 40"), raw("00 80 00 00 46 8c 00 00 03 00 40")),
    # The same uuid as a Windows GUID, and as RFC 4122 has it.
    "T-UUID-4122": (
        raw("98 33 22 11 00 55 44 07 46 88 99 aa bb cc dd ee ff"),
        raw("98 00 11 22 33 44 55 46 07 88 99 aa bb cc dd ee ff"),
    ),
}


def _value(rule: str, wrong: bytes, right: bytes, certain: bool) -> None:
    def tell(d: Dialogue) -> None:
        d.headers()
        said = d.client.open(properties=[("k", wrong if d.wrong else right)])
        if d.wrong:
            said.breaks(rule, certain=certain)
        d.server.open()
        d.client.begin()
        d.server.begin()
        d.goodbye()

    then = SAME if rule in FOUND_AGAIN else SILENT
    add_pair(rule.lower().replace("-", "_"), tell, rule, then=then)


for _rule, (_wrong, _right) in VALUES.items():
    _value(_rule, _wrong, _right, True)
for _rule, (_wrong, _right) in ARGUABLE.items():
    _value(_rule, _wrong, _right, False)


# ---- fields ----------------------------------------------------------------------------------------------


def _open(rule: str, wrong: bytes, right: bytes, then: str = SILENT) -> None:
    """The open as it stands."""

    def tell(d: Dialogue) -> None:
        d.headers()
        said = d.client.frame(wrong if d.wrong else right)
        if d.wrong:
            said.breaks(rule)
        d.server.open()
        d.goodbye()

    add_pair(rule.lower().replace("-", "_"), tell, rule, then=then)


_open("T-COMP-TYPE", amqp.open_(container_id=amqp.symbol("c")), amqp.open_(container_id="c"))
_open(
    "T-COMP-EXTRA",
    amqp.open_(container_id="c", extra=[amqp.null(), amqp.uint(1)]),
    amqp.open_(container_id="c", keep_nulls=True),
    then=SAME,
)
_open(
    "T-COMP-MULT-ARRAY",
    amqp.open_(container_id="c", outgoing_locales=amqp.list_([amqp.symbol("de"), amqp.symbol("en-US")])),
    amqp.open_(container_id="c", outgoing_locales=["de", "en-US"]),
)
_open(
    "T-FIELDS-KEY",
    amqp.open_(container_id="c", properties=[(amqp.string("k"), "v")]),
    amqp.open_(container_id="c", properties=[("k", "v")]),
)
_open("P-OPEN-MAND", amqp.open_(), amqp.open_(container_id=""))
_open("T-SIZE-OVERRUN", raw("00 53 10 c0 04 01 a1 7f 63"), raw("00 53 10 c0 04 01 a1 01 63"))


def _said(rule: str, words: Words, then: bool = True) -> None:
    """Words behind a link with credit; they say themselves what is wrong."""

    def tell(d: Dialogue) -> None:
        d.linked()
        said = words(d)
        if d.wrong:
            said.breaks(rule, certain=then)

    add_pair(rule.lower().replace("-", "_"), tell, rule)


_said(
    "T-DESC-CTOR",
    lambda d: d.client.frame(raw("00 53 17" if d.wrong else "00 53 17 45")),
)
_said(
    "T-COMP-LIST",
    lambda d: d.client.transfer(state=raw("00 53 24 40" if d.wrong else "00 53 24 45"), more=True),
)
_said(
    "T-COMP-DESC",
    lambda d: d.client.frame(
        amqp.detach(
            handle=0,
            error=raw("00 53 1e c0 06 01 a3 03 78 3a 79") if d.wrong else amqp.error(condition="x:y"),
        )
    ),
)
_said(
    "T-COMP-REQUIRES",
    lambda d: d.client.attach(
        handle=1, name="r", target=amqp.source(address="q") if d.wrong else amqp.target(address="q")
    ),
    then=False,
)
_said(
    "T-ENUM-SNDMODE",
    lambda d: d.client.attach(handle=1, name="r", snd_settle_mode=3 if d.wrong else 2),
)
_said(
    "T-ENUM-RCVMODE",
    lambda d: d.client.attach(handle=1, name="r", rcv_settle_mode=2 if d.wrong else 1),
)
_said(
    "T-ENUM-DURABILITY",
    lambda d: d.client.attach(
        handle=1, name="r", source=amqp.source(address="q", durable=3 if d.wrong else 2)
    ),
)
_said(
    "T-ENUM-EXPIRY",
    lambda d: d.client.attach(
        handle=1, name="r", source=amqp.source(address="q", expiry_policy="now" if d.wrong else "never")
    ),
)
_said(
    "P-BEGIN-MAND",
    lambda d: d.client.begin(channel=1, incoming_window=None if d.wrong else 0),
)
_said(
    "P-ATTACH-MAND",
    lambda d: d.client.attach(handle=1, name=None if d.wrong else "r"),
)
_said(
    "P-FLOW-MAND",
    lambda d: d.client.flow(outgoing_window=None if d.wrong else 0),
)
_said(
    "P-TRANSFER-MAND",
    lambda d: d.client.frame(
        amqp.transfer(handle=None if d.wrong else 0, delivery_id=0, delivery_tag=b"t", message_format=0),
        amqp.data(b"x"),
    ),
)
_said(
    "P-DETACH-MAND",
    lambda d: d.client.frame(amqp.detach(handle=None if d.wrong else 0)),
)
_said(
    "P-ERROR-MAND",
    lambda d: d.client.frame(amqp.detach(handle=0, error=amqp.error(condition=None if d.wrong else "x:y"))),
)


def _of_a_delivery(rule: str, words: Words) -> None:
    """Words about a delivery that was sent unsettled."""

    def tell(d: Dialogue) -> None:
        d.linked()
        d.client.transfer()
        said = words(d)
        if d.wrong:
            said.breaks(rule)

    add_pair(rule.lower().replace("-", "_"), tell, rule)


_of_a_delivery(
    "P-DISP-MAND",
    lambda d: d.server.frame(amqp.disposition(role=RECEIVER, first=None if d.wrong else 0, settled=True)),
)
_of_a_delivery(
    "P-RECEIVED-MAND",
    lambda d: d.server.disposition(
        0,
        settled=None,
        state=amqp.received(section_number=0, section_offset=None if d.wrong else 0),
    ),
)


def _transactional(rule: str, wrong: bytes, right: bytes) -> None:
    """A state of a declare's disposition, of a discharge, or of work."""

    def tell(d: Dialogue) -> None:
        d.begun()
        d.attached(client={"target": amqp.coordinator()}, server={"target": amqp.coordinator()})
        d.client.transfer(amqp.amqp_value(amqp.declare()))
        content = wrong if d.wrong else right
        if rule == "P-DISCHARGE-MAND":
            d.server.disposition(0, state=amqp.declared(txn_id=b"T"))
            said = d.client.transfer(amqp.amqp_value(content))
        elif rule == "P-TXSTATE-MAND":
            d.server.disposition(0, state=amqp.declared(txn_id=b"T"))
            d.client.attach(handle=1, name="work")
            d.server.attach(RECEIVER, handle=1, name="work")
            d.server.flow(handle=1)
            d.client.transfer(handle=1, state=right)
            said = d.server.disposition(1, state=content)
        else:
            said = d.server.disposition(0, state=content)
        if d.wrong:
            said.breaks(rule)

    add_pair(rule.lower().replace("-", "_"), tell, rule)


_transactional("P-DECLARED-MAND", amqp.declared(), amqp.declared(txn_id=b"T"))
_transactional("P-DISCHARGE-MAND", amqp.discharge(fail=False), amqp.discharge(txn_id=b"T"))
_transactional(
    "P-TXSTATE-MAND",
    amqp.transactional_state(outcome=amqp.accepted()),
    amqp.transactional_state(txn_id=b"T", outcome=amqp.accepted()),
)


def _sasl(rule: str, words: Callable[[Dialogue, bool], Said], turn: int) -> None:
    """The SASL exchange with a challenge, one of its frames wrong."""

    def tell(d: Dialogue) -> None:
        d.client.header(3)
        d.server.header(3)
        right: list[Callable[[], Said]] = [
            d.server.mechanisms,
            d.client.init,
            d.server.challenge,
            d.client.response,
            d.server.outcome,
        ]
        for n, say in enumerate(right):
            if n == turn and d.wrong:
                words(d, True).breaks(rule)
            else:
                say()

    add_pair(rule.lower().replace("-", "_"), tell, rule)


_sasl("SA-MECH-NONEMPTY", lambda d, w: d.server.sasl_frame(amqp.sasl_mechanisms()), 0)
_sasl(
    "T-COMP-MULT-MAND",
    lambda d, w: d.server.sasl_frame(amqp.sasl_mechanisms(sasl_server_mechanisms=raw("e0 02 00 a3"))),
    0,
)
_sasl("P-SASLINIT-MAND", lambda d, w: d.client.init(mechanism=None), 1)  # type: ignore[arg-type]
_sasl("P-SASLCHAL-MAND", lambda d, w: d.server.sasl_frame(amqp.sasl_challenge()), 2)
_sasl("P-SASLRESP-MAND", lambda d, w: d.client.sasl_frame(amqp.sasl_response()), 3)
_sasl("P-SASLOUT-MAND", lambda d, w: d.server.sasl_frame(amqp.sasl_outcome()), 4)
_sasl("T-ENUM-SASLCODE", lambda d, w: d.server.sasl_frame(amqp.sasl_outcome(code=5)), 4)


# ---- serial numbers --------------------------------------------------------------------------------------


@pair("T-SERIAL")
def ids_wrap_as_if_they_were_signed(d: Dialogue) -> None:
    d.linked()
    d.client.transfer(delivery_id=0x7FFFFFFF)
    said = d.client.transfer(delivery_id=0 if d.wrong else 0x80000000)
    if d.wrong:
        said.breaks("T-SERIAL")
    d.goodbye()


@reported("ids wrap and leave one out")
def ids_wrap_and_leave_one_out(d: Dialogue) -> None:
    for channel, (before, after) in enumerate(((0xFFFFFFFF, 1), (0xFFFFFFFE, 0))):
        if not channel:
            d.linked()
        else:
            d.client.begin(channel=1)
            d.server.begin(channel=1)
            d.client.attach(SENDER, channel=1, name="r")
            d.server.attach(RECEIVER, channel=1, name="r")
            d.server.flow(handle=0, channel=1)
        d.client.transfer(channel=channel, delivery_id=before)
        d.client.transfer(channel=channel, delivery_id=after).may_break("T-SERIAL")
    d.goodbye()


@legal("ids wrap")
def ids_wrap(d: Dialogue) -> None:
    d.linked()
    d.client.transfer(delivery_id=0xFFFFFFFF)
    d.client.transfer(delivery_id=0)
    d.goodbye()


# ---- guards ----------------------------------------------------------------------------------------------


@legal("T-LIST0")
def empty_lists(d: Dialogue) -> None:
    d.linked()
    d.client.transfer(settled=None)
    d.server.disposition(0, state=raw("00 53 24 45"))
    d.client.say(amqp.frame(raw("00 53 17 45")))
    d.server.end_session()
    d.client.say(amqp.frame(raw("00 53 18 45")))
    d.server.close()
    d.tcp.goodbye()


@legal("T-ENC-ANYWIDTH")
def wide_encodings(d: Dialogue) -> None:
    d.headers()
    d.client.open(choice="widest", descriptor_form="symbol32", properties=[("k", amqp.ulong(1, "widest"))])
    d.server.open(choice="widest", descriptor_form="full", max_frame_size=512)
    d.client.begin(choice="widest")
    d.server.begin(choice="widest", descriptor_form="symbol")
    d.client.attach(SENDER, choice="widest")
    d.server.attach(RECEIVER, choice="widest")
    d.server.flow(handle=0, choice="widest")
    d.client.transfer(amqp.data(b"x", "widest", "full"), choice="widest")
    d.server.disposition(0, choice="widest")
    d.goodbye()


@legal("T-COMP-TRAILNULL")
def trailing_nulls(d: Dialogue) -> None:
    d.headers()
    d.client.open(keep_nulls=True)
    d.server.open()
    d.client.begin(keep_nulls=True)
    d.server.begin()
    d.client.attach(keep_nulls=True)
    d.server.attach(RECEIVER, keep_nulls=True)
    d.server.flow(handle=0, keep_nulls=True)
    d.client.transfer(keep_nulls=True)
    d.goodbye()


@legal("T-COMP-MULT-SINGLE")
def one_value_without_an_array(d: Dialogue) -> None:
    d.headers()
    d.client.open(outgoing_locales="en-US", offered_capabilities=["ANONYMOUS-RELAY"])
    d.server.open(desired_capabilities="a")
    d.goodbye()


@reported("what a faulty frame was to set up is not missed behind it")
def nothing_follows_from_an_undecodable_frame(d: Dialogue) -> None:
    d.linked()
    d.client.frame(raw("00 53 12 c0 09 03 a1 01 72")).breaks("T-SIZE-OVERRUN")
    d.client.transfer(handle=1)
    d.client.flow(handle=1)
    d.client.detach(handle=1)
    d.goodbye()
