"""Two AMQP 1.0 peers that say, at random, what they have a right to say, and nothing else.

Written from the specification's text (transport.xml, security.xml); it shares no table, no name and no line
with the product. A `Peer` is a program: it knows what it has *heard* so far and what it has said. Each call
of `act` picks one of the things that it may legally say now and says it. When what it says is sent, captured
and heard is no matter of the peers: `support.network` carries it.

    talk = Talk(Random("seed"))
    while talk.peers[0].act(): ...           # writes to talk.said[0]
    talk.peers[1].hear(talk.said[0][0])

Where the text leaves open whether something is legal, the peers do not do it; the places are marked "by the
text" where they do something that looks odd and is legal. What they do not do at all: resuming a link on
another session, incomplete unsettled maps, stealing, extensions, TLS.

Serial numbers: what a peer counts itself is a plain int that never wraps; `& WRAP` puts it on the wire. What
it hears it subtracts modulo 2^32 from its own count, which is never behind.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from support import amqp10_encode as amqp

Fields = dict[str, Any]
State = str | tuple[Any, ...] | None  # the name of one, ("declared", id), ("transactional", id, outcome)
Choice = tuple[float, Callable[[], object]]

CLIENT, SERVER = 0, 1
NAMES = ("client", "server")
WRAP = 0xFFFFFFFF
SENDER, RECEIVER = amqp.SENDER, amqp.RECEIVER

MOST_UNSETTLED = 5  # that an attach of 512 octets has room for

# Outcomes a receiver can give, and the state that is no outcome.
OUTCOMES = ("accepted", "accepted", "accepted", "rejected", "released", "modified")
_STATES: dict[str, bytes] = {
    "accepted": amqp.accepted(),
    "rejected": amqp.rejected(error=amqp.error(condition="amqp:precondition-failed")),
    "released": amqp.released(),
    "modified": amqp.modified(delivery_failed=True),
    "received": amqp.received(section_number=0, section_offset=0),
    "failed": amqp.rejected(error=amqp.error(condition="amqp:transaction:rollback")),
    "refused": amqp.rejected(),
}

# What the coordinator offers: the peers do all of it.
_CAPABILITIES = ["amqp:local-transactions", "amqp:multi-txns-per-ssn", "amqp:multi-ssns-per-txn"]


class Terminus(amqp.Encoded):
    """A source or target. outcomes: those that a source lets its receiver choose; none: any."""

    outcomes: tuple[str, ...] = ()
    coordinator = False

    @classmethod
    def of(cls, encoded: amqp.Encoded) -> Terminus:
        terminus = cls(encoded, encoded.constructor)
        terminus.composite = encoded.composite
        return terminus


def state_octets(state: State) -> bytes | None:
    """A delivery state by what `Said` has of it."""
    if isinstance(state, tuple):
        if state[0] == "declared":
            return amqp.declared(txn_id=state[1])
        if state[0] == "received":
            return amqp.received(section_number=state[1], section_offset=state[2])
        return amqp.transactional_state(txn_id=state[1], outcome=state_octets(state[2]))
    return None if state is None else _STATES[state]


@dataclass(slots=True)
class Said:
    """One frame or protocol header. `octets` stand at `start` to `end` of the stream of `side`.

    fields are Python values: a state is the name of one, an error its condition.
    """

    side: int
    name: str
    channel: int
    fields: Fields
    payload: bytes
    octets: bytes
    start: int
    end: int
    wrong: bool = False  # not legal: the other peer does not take it in

    def __str__(self) -> str:
        shown = ", ".join(f"{k}={v!r:.40}" for k, v in self.fields.items() if v is not None)
        payload = f" + {len(self.payload)}" if self.payload else ""
        return f"{NAMES[self.side]}[{self.channel}] {self.name}({shown}){payload} {self.start}..{self.end}"


SERIAL_NUMBERS = (
    *("next_incoming_id", "next_outgoing_id", "delivery_count", "initial_delivery_count"),
    *("delivery_id", "first", "last"),
)


def encoded(name: str, channel: int, fields: Fields, payload: bytes = b"", wide: bool = False) -> bytes:
    """The octets of a frame or header from what `Said` holds. wide: all serial numbers take four octets."""
    if name == "header":
        return amqp.protocol_header(fields["id"])
    if name == "empty":
        return amqp.frame(channel=channel)
    values = dict(fields)
    if "state" in values:
        values["state"] = state_octets(values["state"])
    if values.get("unsettled") is not None:
        values["unsettled"] = {tag: state_octets(state) for tag, state in values["unsettled"].items()}
    if isinstance(values.get("error"), str):
        values["error"] = amqp.error(condition=values["error"])
    for number in SERIAL_NUMBERS if wide else ():
        if type(values.get(number)) is int:
            values[number] = amqp.uint(values[number], "widest")
    body = amqp.composite(name, **values)
    if name.startswith("sasl-"):
        return amqp.sasl_frame(body)
    return amqp.frame(body, payload, channel=channel)


@dataclass(slots=True)
class Character:
    """What a peer is like: the limits it announces, and what it is inclined to do."""

    max_frame_size: int | None
    channel_max: int | None
    handle_max: int | None
    idle_time_out: int | None
    small_windows: bool
    eager: bool  # as server: does not wait for the client's header
    begins: int  # sessions it begins itself
    attaches: int  # links it attaches itself, in a session
    ends: float  # weights
    detaches: float
    closes: float
    errors: float  # share of ends, detaches and closes that carry one
    big: bool  # messages larger than a frame
    pre_answer_end: bool  # ends sessions whose begin is not answered yet (no diagram shows it)
    transacts: bool  # as client: attaches a coordinator
    resumes: float  # share of re-attaches with an unsettled map
    counts_late: bool  # by the text: counts a delivery when it is complete, not when it begins
    counts_aborted: bool  # by the text: an aborted delivery was a delivery, or none
    patience: float = 1.0  # how fast it settles, and how seldom it is for leaving a link and keeping it

    def settle_down(self, suspends: bool) -> None:
        """Long sessions and links with much to say; or links that are left and taken up again and again."""
        self.begins = min(self.begins, 1)
        self.small_windows = False
        self.ends = 0.001
        self.closes = 0.0
        self.detaches = 0.15 if suspends else 0.005
        if suspends:
            self.errors = 0.0
            self.resumes = 0.9
            self.patience = 0.1

    @staticmethod
    def draw(random: Random) -> Character:
        return Character(
            max_frame_size=random.choice([None, 512, 512, 700, 1024, 4096, 65536]),
            channel_max=random.choice([None, 0, 1, 3, 7, 65535]),
            handle_max=random.choice([None, 3, 3, 7, 255, WRAP]),
            idle_time_out=random.choice([None, None, 0, 5_000, 20_000, 60_000]),
            small_windows=random.random() < 0.5,
            eager=random.random() < 0.5,
            begins=random.choice([0, 1, 1, 2, 3]),
            attaches=random.choice([1, 2, 3]),
            ends=random.choice([0.003, 0.02, 0.3]),
            detaches=random.choice([0.02, 0.1, 0.7]),
            closes=random.choice([0.0, 0.002, 0.02]),
            errors=random.choice([0.0, 0.2, 0.5]),
            big=random.random() < 0.5,
            pre_answer_end=random.random() < 0.1,
            transacts=random.random() < 0.3,
            resumes=random.choice([0.0, 0.5, 0.9]),
            counts_late=random.random() < 0.3,
            counts_aborted=random.random() < 0.7,
        )


@dataclass(slots=True)
class Delivery:
    """A delivery at the end that sends it."""

    link: Link
    number: int
    tag: bytes
    message: bytes
    position: int = 0
    settled: bool = False
    complete: bool = False
    state: State = None
    remote_settled: bool = False
    remote_state: State = None
    over: bool = False  # resumed only to settle it
    txn: bytes | None = None  # posted in this transaction
    control: tuple[Any, ...] | None = None  # on a control link: ("declare",) or ("discharge", id, fail)


@dataclass(slots=True)
class Incoming:
    """A delivery at the end that receives it."""

    link: Link
    number: int
    second: bool  # receiver-settle-mode second holds for it
    sent_settled: bool = False
    complete: bool = False
    aborted: bool = False
    state: State = None
    settled: bool = False
    remote_settled: bool = False
    tag: bytes = b""
    txn: bytes | None = None
    control: tuple[Any, ...] | None = None


@dataclass(slots=True)
class Link:
    """One end of a link in a session.

    attaches, peer_attaches count how often each end has attached it; `up` is the specification's
    attached: both handles assigned, by attaches that belong together.
    """

    name: str
    sender: bool
    count: int  # sender's delivery-count; the initial one until it attaches
    handle: int | None = None
    peer_handle: int | None = None
    attaches: int = 0
    peer_attaches: int = 0
    mine: Fields = field(default_factory=dict)
    theirs: Fields = field(default_factory=dict)
    closed: bool = False
    errored: bool = False
    peer_closed: bool = False
    peer_errored: bool = False
    # Sender: the delivery-limit, the largest there ever was since the attach, and drain as last heard.
    base: int = 0  # delivery-count at the attach
    limit: int | None = None
    largest: int = 0
    grants: int = 0
    pending: int | None = None
    drain: bool = False
    open: Delivery | None = None
    broken: bool = False  # an unfinished delivery met a detach: the link can only be closed
    spent: list[bytes] = field(default_factory=list)  # tags that no end holds unsettled any more
    aborted: int = 0
    uncounted: int = 0  # of these, those that the sender does not count
    coordinator: bool = False
    tangled: bool = False  # the other end attached it again before it was detached here
    # Deliveries from before a re-attach, by tag: those to be resumed, and those that the receiver still has.
    held: dict[bytes, Delivery] = field(default_factory=dict)
    kept: dict[bytes, Incoming] = field(default_factory=dict)
    # Receiver: the sender's delivery-count as far as known, and what it last said of `available`.
    known: int | None = None
    available: int | None = None
    credit: int = 0
    receiving: Incoming | None = None
    acquires: bytes | None = None  # sender: the transaction under which its receiver wants messages
    asked: bytes | None = None  # receiver: the one under which it does
    vague: bool = False  # the sender reported its count within a delivery: whether with it or without it

    @property
    def up(self) -> bool:
        return (
            self.handle is not None and self.peer_handle is not None and self.attaches == self.peer_attaches
        )

    @property
    def live(self) -> bool:
        """Deliveries on it may still be spoken of."""
        return not (self.closed or self.errored or self.peer_closed or self.peer_errored)

    @property
    def owes_close(self) -> bool:
        """The other end closed it, this one has not said so yet."""
        return self.peer_closed and not self.closed and not self.errored


@dataclass(slots=True)
class Session:
    """One end of a session. key: the same at both ends."""

    key: str
    initial_out: int
    next_out: int
    next_delivery: int
    out: int | None = None
    into: int | None = None
    begin_heard: bool = False
    begin_sent: bool = False
    answering: bool = False  # it was the other peer's begin that started it
    end_sent: bool = False
    end_heard: bool = False
    early: bool = False  # ended before it was answered
    discarding: bool = False
    must_end: str | None = None
    bound: int | None = None  # first transfer-id beyond the peer's incoming-window
    largest_bound: int = 0
    next_in: int = 0
    window_left: int = 0  # of what this end announced, for liveliness only
    peer_handle_max: int = WRAP
    handles: dict[int, Link] = field(default_factory=dict)
    peer_handles: dict[int, Link] = field(default_factory=dict)
    links: dict[tuple[str, bool], Link] = field(default_factory=dict)
    sent: dict[int, Delivery] = field(default_factory=dict)
    received: dict[int, Incoming] = field(default_factory=dict)
    attached_by_me: int = 0
    echo: bool = False
    aborted: list[int] = field(default_factory=list)  # deliveries of this end's

    @property
    def usable(self) -> bool:
        return self.begin_sent and not self.end_sent and self.must_end is None


def near_wrap(random: Random) -> int:
    """An initial serial number: often so near the wrap that the conversation crosses it."""
    return random.choice([0, 1, WRAP, WRAP - random.randrange(30), 0x7FFFFFFF - random.randrange(10)])


def weighted(random: Random, choices: list[Choice]) -> Callable[[], object] | None:
    total = sum(weight for weight, _ in choices)
    if total <= 0:
        return None
    point = random.random() * total
    for weight, action in choices:
        point -= weight
        if point < 0:
            return action
    return choices[-1][1]


class Talk:
    """Both peers, and what they have said: `said[side]` is the side's stream as frames."""

    def __init__(self, random: Random, *, sasl: bool | None = None) -> None:
        self.random = random
        self.sasl = random.random() < 0.4 if sasl is None else sasl
        self.sasl_rounds = random.choice([0, 0, 1, 2])
        self.sasl_code = 0 if random.random() < 0.95 else random.choice([1, 2, 3, 4])
        self.said: tuple[list[Said], list[Said]] = ([], [])
        self.closing = False
        # A peer answers a begin before it begins a session itself: two that are never answered cannot be
        # reported from one peer that answers without remote-channel.
        self.polite = False
        self.restless = False  # nobody pauses: for other protocols
        # Now and then a peer may do something else first; then it says nothing legal in that turn.
        self.mischief: Callable[[Peer], Said | None] | None = None
        # The initial serial number of everything, unless that is left to chance. Serial numbers are all of
        # one size then: what is said is the same, whatever the initial number is.
        self.serial: int | None = None
        # What is said on control links, by session, sender and delivery-id: else they would have to decode.
        self.controls: dict[tuple[str, int, int], tuple[Any, ...]] = {}
        self.peers = (self.new_peer(CLIENT), self.new_peer(SERVER))
        mood = random.choice(["", "", "steady", "suspends"])
        if mood:
            for peer in self.peers:
                peer.character.settle_down(suspends=mood == "suspends")

    def new_peer(self, side: int) -> Peer:
        """One that speaks the dialect of the conversation."""
        return Peer(self, side)

    def initial(self) -> int:
        """The initial serial number of a session or link."""
        drawn = near_wrap(self.random)
        return drawn if self.serial is None else self.serial


class Peer:
    """One peer's program. Public: `act` says something legal, `hear` takes in what the other one said.

    amqp: the encoder of its dialect. least_frame_size: what every peer of its dialect takes. largest_message:
    more octets than any message has.
    """

    amqp: Any = amqp
    least_frame_size = 512
    largest_message = 4000

    def __init__(self, talk: Talk, side: int) -> None:
        self.talk = talk
        self.side = side
        self.random = talk.random
        self.character = Character.draw(self.random)
        # SASL
        self.sasl_done = not talk.sasl
        self.sasl_header_sent = False
        self.sasl_heard: list[str] = []
        self.sasl_said: list[str] = []
        # Connection
        self.header_sent = False
        self.header_heard = False
        self.open_sent = False
        self.peer_open: Fields | None = None
        self.close_sent = False
        self.close_heard = False
        self.discarding = False
        self.failed = False
        # Sessions by the channel this peer sends on, and by the one it hears.
        self.outgoing: dict[int, Session] = {}
        self.incoming: dict[int, Session] = {}
        self.sessions: list[Session] = []
        self.begun = 0
        self.peer_begun = 0
        self.awaiting: dict[int, list[Session]] = {}
        self.unsafe: set[int] = set()
        self.tags = 0
        self.messages = 0
        # Transactions: the control link and what is declared on it (client); how many there were, and whether
        # those that are over were committed (server).
        self.control: Link | None = None
        self.live: list[bytes] = []
        self.discharging: set[bytes] = set()  # of these: the discharge is on its way, in part
        self.declared = 0
        self.over: dict[bytes, bool] = {}

    # ---- saying -------------------------------------------------------------------------------------------

    @property
    def finished(self) -> bool:
        """It will say nothing any more."""
        return self.close_sent or self.failed

    @property
    def frame_limit(self) -> int:
        """The largest frame that it may send now."""
        if self.peer_open is None:
            return self.least_frame_size
        return self.peer_open["max_frame_size"] or WRAP

    def may_be_silent(self) -> int | None:
        """For how long (ns) from its last word on: "Idle Time Out". None: as long as it likes."""
        asked = 0 if self.peer_open is None else self.peer_open["idle_time_out"]
        if not asked or not self.open_sent or self.close_sent or self.close_heard:
            return None
        milliseconds: int = asked
        return milliseconds * 1_000_000

    def still_here(self) -> None:
        """Said when it has been silent for long."""
        self.empty()

    def hear_wrong(self, said: Said) -> None:
        """What is not legal it does not take in."""

    def say(self, name: str, channel: int = 0, payload: bytes = b"", /, **fields: Any) -> Said:
        """Append a frame to this peer's stream, legal or not."""
        octets = self.encoded(name, channel, fields, payload)
        return self.put(Said(self.side, name, channel, fields, payload, octets, 0, 0))

    def encoded(self, name: str, channel: int, fields: Fields, payload: bytes = b"") -> bytes:
        return encoded(name, channel, fields, payload, self.talk.serial is not None)

    def put(self, said: Said) -> Said:
        stream = self.talk.said[self.side]
        said.start = stream[-1].end if stream else 0
        said.end = said.start + len(said.octets)
        stream.append(said)
        return said

    def act(self) -> bool:
        """Say something that is legal now. False if there is nothing it may or wants to say."""
        if self.talk.mischief is not None and self.chance(0.1) and not self.close_sent:
            said = self.talk.mischief(self)
            if said is not None:
                said.wrong = True
                return True
        choices = self.choices()
        if sum(weight for weight, _ in choices) < 0.5 and self.chance(0.9):
            return False  # nothing worth saying
        action = weighted(self.random, choices)
        if action is None:
            return False
        before = len(self.talk.said[self.side])
        action()
        for said in self.talk.said[self.side][before:]:
            assert said.name == "header" or len(said.octets) <= self.frame_limit, said
        return True

    def choices(self) -> list[Choice]:
        if self.finished:
            return []
        if not self.sasl_done:
            return self.sasl_choices()
        if not self.header_sent:
            if self.side == SERVER and not self.character.eager and not self.header_heard:
                return []
            return [(1, self.header)]
        if not self.open_sent:
            return [(1, self.open)]
        closing = 1.0 if self.close_heard else 2.0 if self.talk.closing else self.character.closes
        choices: list[Choice] = [(0.05, self.empty), (closing, self.close)]
        choices += self.begin_choices()
        for session in self.sessions:
            choices += self.session_choices(session)
        return choices

    # ---- SASL: security.xml, "SASL Negotiation" -----------------------------------------------------------

    def sasl_choices(self) -> list[Choice]:
        if not self.sasl_header_sent:
            if self.side == SERVER and not self.character.eager and "header" not in self.sasl_heard:
                return []
            return [(1, self.sasl_header)]
        heard, said = self.sasl_heard, self.sasl_said
        if self.side == CLIENT:
            if "sasl-mechanisms" in heard and "sasl-init" not in said:
                return [(1, self.sasl_init)]
            if heard.count("sasl-challenge") > said.count("sasl-response"):
                return [(1, lambda: self.sasl_say("sasl-response", response=b"r"))]
            return []
        if "sasl-mechanisms" not in said:
            return [(1, lambda: self.sasl_say("sasl-mechanisms", sasl_server_mechanisms=["PLAIN", "SCRAM"]))]
        if "sasl-init" in heard and heard.count("sasl-response") == said.count("sasl-challenge"):
            if said.count("sasl-challenge") < self.talk.sasl_rounds:
                return [(1, lambda: self.sasl_say("sasl-challenge", challenge=b"c"))]
            return [(1, self.sasl_outcome)]
        return []

    def sasl_say(self, name: str, /, **fields: Any) -> None:
        self.sasl_said.append(name)
        self.say(name, **fields)

    def sasl_header(self) -> None:
        self.sasl_header_sent = True
        self.say("header", id=3)

    def sasl_init(self) -> None:
        mechanism = self.random.choice(["PLAIN", "SCRAM"])
        self.sasl_say("sasl-init", mechanism=mechanism, initial_response=b"\0user\0secret")

    def sasl_outcome(self) -> None:
        code = self.talk.sasl_code
        self.sasl_say(
            "sasl-outcome", code=code, additional_data=b"x" if code == 0 and self.chance(0.2) else None
        )
        self.sasl_done = True
        self.failed = code != 0

    # ---- connection: "Opening a Connection", "Pipelined Open", "Closing a Connection", state diagram ------

    def header(self) -> None:
        self.header_sent = True
        self.say("header", id=0)

    def open(self) -> None:
        character = self.character
        self.open_sent = True
        self.say(
            "open",
            container_id=NAMES[self.side],
            hostname="example" if self.side == CLIENT and self.chance(0.5) else None,
            max_frame_size=character.max_frame_size,
            channel_max=character.channel_max,
            idle_time_out=character.idle_time_out,
        )

    def empty(self) -> None:
        self.say("empty")

    def close(self) -> None:
        error = "amqp:internal-error" if self.chance(self.character.errors) else None
        self.close_sent = True
        self.discarding = error is not None
        self.say("close", error=error)

    def chance(self, probability: float) -> bool:
        return self.random.random() < probability

    # ---- sessions: "Establishing a Session", "Ending a Session", "Session Flow Control" -------------------

    def free_channel(self) -> int | None:
        """A channel that may be begun on: within the peer's channel-max, 0 before it is known."""
        limit = 0
        if self.peer_open is not None:
            limit = 65535 if self.peer_open["channel_max"] is None else self.peer_open["channel_max"]
        taken = self.outgoing.keys() | self.unsafe
        free = [channel for channel in range(min(limit, 8) + 1) if channel not in taken]
        if limit > 8 and self.chance(0.1) and limit not in taken:
            return limit
        if not free:
            return None
        return free[0] if self.chance(0.6) else self.random.choice(free)

    def begin_choices(self) -> list[Choice]:
        choices: list[Choice] = []
        if self.free_channel() is None:
            return choices
        asked = any(session.begin_heard and not session.begin_sent for session in self.sessions)
        if self.talk.polite and asked:
            pass
        elif self.begun < self.character.begins or (self.side == CLIENT and self.begun == 0):
            choices.append((1, self.begin_new))
        for session in self.sessions:
            if session.begin_heard and not session.begin_sent:
                choices.append((8, lambda session=session: self.begin(session)))  # type: ignore[misc]
        return choices

    def new_session(self, key: str) -> Session:
        number = self.talk.initial()
        session = Session(key, number, number, self.talk.initial())
        self.sessions.append(session)
        return session

    def begin_new(self) -> None:
        session = self.new_session(f"{NAMES[self.side][0]}{self.begun}")
        self.begun += 1
        self.begin(session)

    def begin(self, session: Session) -> None:
        channel = self.free_channel()
        if channel is None:
            return
        answer = session.into if session.begin_heard else None
        session.begin_sent = True
        session.answering = session.begin_heard
        session.out = channel
        self.outgoing[channel] = session
        if not session.begin_heard:
            self.awaiting.setdefault(channel, []).append(session)
        self.say(
            "begin",
            channel,
            remote_channel=answer,
            next_outgoing_id=session.next_out & WRAP,
            incoming_window=self.new_window(session),
            outgoing_window=self.random.choice([2048, 100_000, 0x7FFFFFFF]),
            handle_max=self.character.handle_max,
        )

    def new_window(self, session: Session) -> int:
        if self.character.small_windows:
            window = self.random.choice([0, 1, 2, 3, 5, 8, 20])
        else:
            window = self.random.choice([10, 100, 2048, 0x7FFFFFFF, WRAP])
        session.window_left = window
        return window

    def session_choices(self, session: Session) -> list[Choice]:
        if not session.begin_sent or session.end_sent:
            return []
        if session.must_end is not None:
            return [(20, lambda: self.end(session, session.must_end))]
        choices: list[Choice] = []
        if session.begin_heard or self.character.pre_answer_end:
            weight = 2.0 if session.end_heard else self.character.ends
            choices.append((weight, lambda: self.end(session, None)))
        want = 3.0 if session.window_left <= 0 and session.begin_heard else 0.1
        choices.append((4.0 if session.echo else want, lambda: self.flow(session)))
        if not session.end_heard:
            choices += self.attach_choices(session)
            for link in session.links.values():
                choices += self.link_choices(session, link)
        choices += self.disposition_choices(session)
        return choices

    def end(self, session: Session, error: str | None) -> None:
        assert session.out is not None
        if error is None and self.chance(self.character.errors):
            error = "amqp:internal-error"
        session.end_sent = True
        session.discarding = error is not None
        self.without_control(list(session.links.values()))
        del self.outgoing[session.out]
        if not session.begin_heard:
            # Until it is answered, another begin here would make the answers ambiguous.
            self.unsafe.add(session.out)
            session.early = True
        self.say("end", session.out, error=error)

    def flow_fields(self, session: Session) -> Fields:
        """The session's part of a flow."""
        session.echo = False
        return {
            "next_incoming_id": session.next_in & WRAP if session.begin_heard else None,
            "incoming_window": self.new_window(session),
            "next_outgoing_id": session.next_out & WRAP,
            "outgoing_window": self.random.choice([2048, 100_000, 0x7FFFFFFF]),
        }

    def flow(self, session: Session) -> None:
        assert session.out is not None
        self.say("flow", session.out, echo=self.chance(0.2) or None, **self.flow_fields(session))

    # ---- links: "Establishing or Resuming a Link", "Detaching and Reattaching a Link", "Closing a Link" ---

    def free_handle(self, session: Session) -> int | None:
        # Before the peer's begin is heard: what every Character takes is known beforehand.
        limit = session.peer_handle_max if session.begin_heard else 3
        free = [handle for handle in range(min(limit, 9) + 1) if handle not in session.handles]
        if not free:
            return None
        return free[0] if self.chance(0.6) else self.random.choice(free)

    def link_end(self, session: Session, name: str, sender: bool) -> Link:
        link = session.links.get((name, sender))
        if link is None:
            link = Link(name, sender, self.talk.initial())
            session.links[name, sender] = link
        return link

    def attach_control(self, session: Session) -> None:
        """A link to a coordinator; one on a connection at a time."""
        if self.free_handle(session) is not None:
            self.control = self.link_end(session, f"{session.key}-control", True)
            self.control.coordinator = True
            self.attach(session, self.control)

    def without_control(self, links: list[Link]) -> None:
        """If the control link is among these, its transactions are over."""
        if self.control in links:
            self.live.clear()
            self.discharging.clear()
            for session in self.sessions:
                for each in session.sent.values():
                    if each.link is self.control:
                        each.control = None

    def attach_choices(self, session: Session) -> list[Choice]:
        choices: list[Choice] = []
        if self.side == CLIENT and self.character.transacts and self.control is None:
            choices.append((1, lambda: self.attach_control(session)))
        if session.attached_by_me < self.character.attaches:
            choices.append((2, lambda: self.attach_new(session)))
        return choices

    def attach_new(self, session: Session) -> None:
        session.attached_by_me += 1
        # Few names, so that both peers sometimes attach the same link at once.
        name = f"{session.key}-{self.random.randrange(4)}"
        sender = self.chance(0.5)
        if (name, sender) not in session.links and self.free_handle(session) is not None:
            self.attach(session, self.link_end(session, name, sender))

    def attach(self, session: Session, link: Link, *, refuse: bool = False) -> None:
        handle = self.free_handle(session)
        if handle is None or session.out is None:
            return
        random = self.random
        link.handle = handle
        link.attaches += 1
        session.handles[handle] = link
        source, target = self.termini(link)
        has_source = not (refuse and link.sender)
        has_target = not (refuse and not link.sender)
        if link.theirs and not link.sender and getattr(link.theirs["target"], "coordinator", False):
            link.coordinator = True
            target = link.theirs["target"]
        fields: Fields = {
            "name": link.name,
            "handle": handle,
            "role": SENDER if link.sender else RECEIVER,
            **self.settle_modes(link),
            "source": source if has_source else None,
            "target": target if has_target else None,
            "unsettled": self.unsettled(session, link),
            "initial_delivery_count": link.count & WRAP if link.sender else None,
            "max_message_size": random.choice([None, 0, self.largest_message, 1 << 40]),
        }
        link.mine = fields
        link.acquires = None
        link.asked = None
        if link.sender:
            link.base = link.count
            link.uncounted = 0
            link.limit = None
            link.grants = 0
            link.drain = False
            if link.pending is not None:
                self.grant(link, link.count + link.pending)
                link.pending = None
        self.say("attach", session.out, **fields)

    def settle_modes(self, link: Link) -> Fields:
        """What an attach says of settling."""
        return {
            "snd_settle_mode": self.random.choice([None, 0, 2] if link.coordinator else [None, 0, 1, 2]),
            "rcv_settle_mode": self.random.choice([None, 0] if link.coordinator else [None, 0, 1]),
        }

    def source_fields(self, link: Link) -> Fields:
        """What else a source says than its address and its outcomes."""
        return {}

    def termini(self, link: Link) -> tuple[Terminus, Terminus]:
        address = f"node-{link.name}"
        outcomes: tuple[str, ...] = ()
        if link.sender and not link.coordinator and self.chance(0.3):
            outcomes = self.random.choice([("accepted",), ("accepted", "released"), tuple(set(OUTCOMES))])
        symbols = [f"amqp:{name}:list" for name in sorted(outcomes)] or None
        source = Terminus.of(self.amqp.source(address=address, outcomes=symbols, **self.source_fields(link)))
        source.outcomes = tuple(sorted(outcomes))
        offered = self.amqp.coordinator(capabilities=_CAPABILITIES)
        target = Terminus.of(offered if link.coordinator else self.amqp.target(address=address))
        target.coordinator = link.coordinator
        return source, target

    def unsettled(self, session: Session, link: Link) -> dict[bytes, State] | None:
        """On a re-attach, sometimes: what this end still has of deliveries, "Resuming Deliveries"."""
        link.held, link.kept = {}, {}
        if link.attaches < 2 or link.coordinator or not self.chance(self.character.resumes):
            return None
        if link.sender:
            mine = [each for each in session.sent.values() if each.link is link]
            if len(mine) > MOST_UNSETTLED:
                return None
            for each in mine:
                del session.sent[each.number]
                if not each.remote_settled:
                    link.held[each.tag] = each
            # An outcome that the receiver has stated is what it is at the source; else all can be sent again.
            return {
                tag: each.remote_state if each.remote_state in OUTCOMES and self.chance(0.3) else None
                for tag, each in link.held.items()
            }
        theirs = [each for each in session.received.values() if each.link is link]
        theirs = [each for each in theirs if not (each.settled or each.aborted or each.sent_settled)]
        if len(theirs) > MOST_UNSETTLED:
            return None
        for one in theirs:
            del session.received[one.number]
            # "RECOMMENDED that receiver SHOULD NOT retain such an entry": of what it has nothing of.
            forgets = one.state is None and self.chance(0.3)
            if not one.remote_settled and not forgets:
                link.kept[one.tag] = one
        known = {tag: one.state for tag, one in link.kept.items()}
        return {tag: "received" if state is None else state for tag, state in known.items()}

    @staticmethod
    def grant(link: Link, limit: int) -> None:
        link.largest = limit if link.grants == 0 else max(link.largest, limit)
        link.limit = limit
        link.grants += 1

    def refuse(self, session: Session, link: Link) -> None:
        """ "the Session Endpoint MUST immediately detach the newly created Link Endpoint"."""
        if self.free_handle(session) is not None:
            self.attach(session, link, refuse=True)
            self.detach(session, link, closed=True)

    def link_choices(self, session: Session, link: Link) -> list[Choice]:
        choices: list[Choice] = []
        if link.errored or link.closed:
            return choices
        if link.handle is None:
            if link.peer_errored:
                return choices
            if link.owes_close:
                # "the partner MUST signal that it has closed the link by reattaching and then sending a
                # closing detach"
                choices.append((4, lambda: self.attach_to_close(session, link)))
            elif link.peer_attaches > link.attaches:
                choices.append((8, lambda: self.attach(session, link)))
                if link.attaches == 0:
                    choices.append((0.2, lambda: self.refuse(session, link)))
            elif link.attaches == link.peer_attaches > 0 and not link.broken:
                choices.append((1, lambda: self.attach(session, link)))
            return choices
        if link.peer_closed or link.peer_errored or link.peer_attaches > link.attaches or link.broken:
            choices.append((4, lambda: self.detach(session, link)))
        elif link.peer_handle is None and link.peer_attaches == link.attaches:
            choices.append((2, lambda: self.detach(session, link)))
        elif not (link.sender and link.theirs and set(link.held) & set(link.theirs["unsettled"] or ())):
            # "Deliveries in this category MUST be resumed by the Sender."
            choices.append((self.character.detaches, lambda: self.detach(session, link)))
        if link.sender:
            choices += self.sender_choices(session, link)
        else:
            choices += self.receiver_choices(session, link)
        return choices

    def attach_to_close(self, session: Session, link: Link) -> None:
        if self.free_handle(session) is not None:
            self.attach(session, link)
            self.detach(session, link, closed=True)

    def detach(self, session: Session, link: Link, closed: bool | None = None) -> None:
        assert link.handle is not None and session.out is not None
        if closed is None:
            for_good = self.chance(0.5 * self.character.patience)
            closed = link.peer_closed or link.open is not None or link.broken or for_good
        # An error only on a link that is attached: before, the answer under way would be errant input.
        error = "amqp:internal-error" if link.up and self.chance(self.character.errors) else None
        handle = link.handle
        del session.handles[handle]
        link.handle = None
        link.closed = closed
        link.errored = error is not None
        link.limit = None
        self.without_control([link])
        self.say("detach", session.out, handle=handle, closed=closed or None, error=error)

    # ---- flow control and transfers: "Flow Control", "Transferring a Message" -----------------------------

    def link_flow(self, session: Session, link: Link, **fields: Any) -> None:
        assert session.out is not None
        self.say("flow", session.out, **self.flow_fields(session), handle=link.handle, **fields)

    def receiver_choices(self, session: Session, link: Link) -> list[Choice]:
        first_half = link.attaches == 1 and link.peer_attaches == 0
        if not link.up and not first_half:
            return []
        want = 5.0 if link.credit <= 0 else 0.1
        return [(want, lambda: self.receiver_flow(session, link))]

    def receiver_flow(self, session: Session, link: Link) -> None:
        random = self.random
        acquire: Fields = {}
        if self.at_work() and not link.coordinator and self.chance(0.4):
            # "specifying a txn-id entry in the properties map of the flow frame"
            link.asked = random.choice(self.at_work())
            acquire["properties"] = {amqp.symbol("txn-id"): amqp.binary(link.asked)}
        credit = random.choice([0, 1, 2, 3, 5, 10, 100, 0x7FFFFFF0])
        drain = credit < 1000 and self.chance(0.15)
        link.credit = credit
        self.link_flow(
            session,
            link,
            delivery_count=None if link.known is None else link.known & WRAP,
            link_credit=credit,
            available=link.available,
            drain=drain or None,
            echo=self.chance(0.1) or None,
            **acquire,
        )

    def sender_choices(self, session: Session, link: Link) -> list[Choice]:
        choices: list[Choice] = []
        first_half = link.attaches == 1 and link.peer_attaches == 0
        if link.up or first_half:
            choices.append((0.3, lambda: self.sender_flow(session, link)))
        if not link.up or link.theirs["target"] is None or link.mine["source"] is None:
            return choices
        if session.bound is None or session.next_out >= session.bound:
            return choices
        if link.open is not None:
            choices.append((12, lambda: self.continue_delivery(session, link)))
        elif link.limit is not None and link.count < link.limit:
            if link.held:
                choices.append((8, lambda: self.resume(session, link)))
            choices.append((8, lambda: self.start_delivery(session, link)))
            if link.drain:
                choices.append((2, lambda: self.drained(session, link)))
        return choices

    def sender_flow(self, session: Session, link: Link) -> None:
        count = link.count - link.uncounted
        if self.character.counts_late and link.open is not None:
            count -= 1
        credit = 0 if link.limit is None else max(0, link.limit - count)
        self.link_flow(
            session,
            link,
            delivery_count=count & WRAP,
            link_credit=credit,
            available=self.random.choice([None, 0, 3]),
            drain=link.drain or None,
        )

    def drained(self, session: Session, link: Link) -> None:
        """No messages left: "advance its delivery-count until link-credit is zero"."""
        assert link.limit is not None
        link.count = link.limit
        link.uncounted = 0
        self.link_flow(
            session, link, delivery_count=link.count & WRAP, link_credit=0, available=0, drain=True
        )

    def message(self, link: Link) -> bytes:
        random = self.random
        before: list[bytes] = []
        after: list[bytes] = []
        identified = False
        if self.chance(0.3):
            before.append(amqp.header(durable=True))
        if self.chance(0.3):
            # Of its own, each: what comes from elsewhere with the same id may be compared with it.
            self.messages += 1
            identified = True
        if self.chance(0.2):
            after.append(amqp.application_properties({"k": "v"}))
        size = random.choice([0, 1, 20, 200, 900, 2500]) if self.character.big else random.choice([0, 1, 20])
        value = self.chance(0.3)
        after.append(amqp.amqp_value(amqp.binary(b"v" * size)) if value else amqp.data(b"d" * size))
        if identified:
            before += self.annotations()
            before.append(self.properties(value))
            if self.messages % 5 == 4:
                after.append(amqp.footer({"x-opt-sum": amqp.uint(size)}))
        return b"".join(before + after)

    def annotations(self) -> list[bytes]:
        """Those that anybody may use, on some messages."""
        optional = amqp.message_annotations({"x-opt-trace": "1", "x-mine": amqp.list_([])})
        return {
            1: [amqp.delivery_annotations({"x-opt-hop": amqp.uint(1)})],
            2: [optional],
            4: [amqp.delivery_annotations({}), optional],
        }.get(self.messages % 5, [])

    def properties(self, value: bool) -> bytes:
        """A message-id, and what a message may say of its body and its times. value: that is no data."""
        given: dict[str, Any] = {"message_id": f"{NAMES[self.side]}-{self.messages}", "subject": "s"}
        kind = self.messages % 4
        if kind == 1:
            given |= {"creation_time": 1_700_000_000_000, "absolute_expiry_time": 1_700_003_600_000}
        elif kind == 2 and not value:
            given |= {"content_type": "text/plain; charset=utf-8", "content_encoding": "gzip"}
        elif kind == 3 and not value:
            given |= {"content_type": "application/json", "correlation_id": amqp.ulong(self.messages)}
        return amqp.properties(**given)

    def new_tag(self, link: Link) -> bytes:
        if link.spent and self.chance(0.3):
            return link.spent.pop()
        self.tags += 1
        return b"t%d" % self.tags

    def start_delivery(self, session: Session, link: Link) -> None:
        delivery = Delivery(link, self.next_number(session), self.new_tag(link), self.message(link))
        if link.coordinator:
            self.say_control(session, delivery)
        elif link.acquires is not None and link.mine["snd_settle_mode"] != 1:
            delivery.txn = link.acquires
        elif self.at_work() and link.mine["snd_settle_mode"] != 1 and self.chance(0.4):
            delivery.txn = self.random.choice(self.at_work())
        self.first_transfer(session, delivery)

    def next_number(self, session: Session) -> int:
        """The number by which dispositions name the next delivery."""
        return session.next_delivery & WRAP

    def first_transfer(self, session: Session, delivery: Delivery, **fields: Any) -> None:
        session.next_delivery += 1
        delivery.link.count += 1
        delivery.link.open = delivery
        self.transfer(
            session,
            delivery.link,
            delivery_id=delivery.number,
            delivery_tag=delivery.tag,
            message_format=0,
            **self.rcv_mode(delivery.link),
            **fields,
        )

    def complete(self) -> list[bytes]:
        """ "It is an error for the controller to attempt to discharge a transaction against which a partial
        delivery has been posted." """
        links = [link for session in self.sessions for link in session.links.values()]
        partial = {link.open.txn for link in links if link.open}
        # "the controller SHOULD ensure there is no outstanding credit at the sender"
        partial |= {
            link.asked for link in links if link.asked and link.credit > 0 and link.handle is not None
        }
        return [txn for txn in self.at_work() if txn not in partial]

    def at_work(self) -> list[bytes]:
        """Transactions under which something new may be done."""
        return [txn for txn in self.live if txn not in self.discharging]

    def say_control(self, session: Session, delivery: Delivery) -> None:
        """ "declare" or "discharge", transactions.xml, "coordination": never settled."""
        complete = self.complete()
        if complete and self.chance(0.5):
            txn = self.random.choice(complete)
            self.discharging.add(txn)
            fail = self.chance(0.3)
            delivery.control = ("discharge", txn, fail)
            body = amqp.discharge(txn_id=txn, fail=fail)
        else:
            delivery.control = ("declare",)
            body = amqp.declare()
        delivery.message = amqp.amqp_value(body)
        self.talk.controls[session.key, self.side, delivery.number] = delivery.control

    def resume(self, session: Session, link: Link) -> None:
        """ "Resuming Deliveries": what both ends have is resumed, what only the sender has is sent anew."""
        tag = self.random.choice(list(link.held))
        old = link.held.pop(tag)
        delivery = Delivery(link, self.next_number(session), tag, old.message)
        known = link.theirs["unsettled"] or {}
        if tag not in known:
            if self.chance(0.5):
                self.first_transfer(session, delivery)
            else:
                link.spent.append(tag)
        elif known[tag] in OUTCOMES:
            delivery.message = b""
            delivery.over = True
            self.first_transfer(session, delivery, resume=True, state=known[tag])
        else:
            state = "received" if self.chance(0.5) else None
            self.first_transfer(session, delivery, resume=True, state=state)

    def rcv_mode(self, link: Link) -> Fields:
        """ "If the negotiated link value is first, then it is illegal to set this field to second"."""
        allowed = [None, None, 0, 1] if link.theirs["rcv_settle_mode"] == 1 else [None, None, 0]
        return {"rcv_settle_mode": self.random.choice(allowed)}

    def continue_delivery(self, session: Session, link: Link) -> None:
        delivery = link.open
        assert delivery is not None and session.out is not None
        if self.chance(0.15):
            settled = True if delivery.settled or self.chance(0.2) else None
            self.say_transfer(session, delivery, handle=link.handle, settled=settled, aborted=True)
            link.open = None
            link.spent.append(delivery.tag)
            link.aborted += 1
            session.aborted.append(delivery.number)
            if delivery.control is not None and delivery.control[0] == "discharge":
                self.discharging.discard(delivery.control[1])
            if not self.character.counts_aborted:
                link.uncounted += 1
            return
        again: Fields = {}
        if self.chance(0.2):
            again["delivery_id"] = delivery.number
        if self.chance(0.2):
            again["delivery_tag"] = delivery.tag
        if self.chance(0.2):
            again["message_format"] = 0
        self.transfer(session, link, **again)

    def transfer(self, session: Session, link: Link, **fields: Any) -> None:
        """The next transfer frame of the link's open delivery: as much as fits, or less."""
        delivery = link.open
        assert delivery is not None and session.out is not None
        mode = link.mine["snd_settle_mode"]
        fields["handle"] = link.handle
        if delivery.txn is not None:
            fields["state"] = ("transactional", delivery.txn, None)
        rest = len(delivery.message) - delivery.position
        fields["settled"] = True
        fields["more"] = True
        room = self.frame_limit - self.around(session, delivery, fields)
        size = min(rest, room)
        if size > 0 and self.chance(0.3):
            size = self.random.randrange(size + 1)
        more = size < rest or self.chance(0.1)
        fields["more"] = more or None
        fields["settled"] = delivery.settled or None
        if mode != 0 and not delivery.settled and delivery.txn is None and delivery.control is None:
            # Mode settled: at the latest on the last transfer.
            if (mode == 1 and (not more or self.chance(0.5))) or (mode != 1 and self.chance(0.2)):
                fields["settled"] = True
        if fields["settled"] and delivery.settled and self.chance(0.5):
            fields["settled"] = None
        if delivery.over:
            fields["settled"] = True
        if fields["settled"]:
            delivery.settled = True
        delivery.position += size
        if not more:
            link.open = None
            delivery.complete = True
            if delivery.control is not None and delivery.control[0] == "discharge":
                self.discharging.discard(delivery.control[1])
                if delivery.control[1] in self.live:
                    self.live.remove(delivery.control[1])
            if delivery.settled:
                link.spent.append(delivery.tag)
            else:
                session.sent[delivery.number] = delivery
        self.say_transfer(session, delivery, size, **fields)

    def around(self, session: Session, delivery: Delivery, fields: Fields) -> int:
        """The octets of a transfer frame with these fields besides those of the message."""
        return len(self.encoded("transfer", session.out or 0, fields))

    def say_transfer(self, session: Session, delivery: Delivery, size: int = 0, /, **fields: Any) -> None:
        """Say a transfer with the `size` octets of the message before the delivery's position."""
        payload = delivery.message[delivery.position - size : delivery.position]
        session.next_out += 1
        self.say("transfer", session.out or 0, payload, **fields)

    # ---- dispositions: "Transferring a Message", settle modes ---------------------------------------------

    def disposition_choices(self, session: Session) -> list[Choice]:
        choices: list[Choice] = []
        incoming = [each for each in session.received.values() if self.answerable(each)]
        incoming = [each for each in incoming if not self.premature(each)]
        if incoming:
            weight = min(6.0, 1.0 * len(incoming)) * self.character.patience
            choices.append((weight, lambda: self.receiver_disposition(session, self.random.choice(incoming))))
        sent = [each for each in session.sent.values() if each.link.live]
        if sent:
            weight = 1.0 if any(each.remote_state or each.remote_settled for each in sent) else 0.1
            weight *= self.character.patience
            choices.append((weight, lambda: self.sender_disposition(session, self.random.choice(sent))))
        return choices

    @staticmethod
    def answerable(each: Incoming) -> bool:
        """This receiver may say something about the delivery, and it would mean something."""
        if not each.link.live or each.settled or each.aborted or each.sent_settled:
            return False
        if not each.complete:
            return each.state is None and not each.remote_settled
        if each.control is not None and each.link.peer_handle is None:
            return False
        decided = each.state in OUTCOMES or isinstance(each.state, tuple)
        if each.remote_settled:
            return decided
        return not (each.second and decided)

    def premature(self, each: Incoming) -> bool:
        """A commit, though the outcome of something posted under it is not reported yet."""
        if each.control is None or each.control[0] != "discharge":
            return False
        if each.control[2]:
            # "the resource MUST abort or complete the sending the remainder of the message before"
            links = [link for session in self.sessions for link in session.links.values()]
            return any(link.open is not None and link.open.txn == each.control[1] for link in links)
        return any(
            one.txn == each.control[1] and not isinstance(one.state, tuple) and not one.sent_settled
            for session in self.sessions
            for one in session.received.values()
        )

    @staticmethod
    def kind(each: Incoming) -> tuple[object, ...]:
        offered = each.link.theirs["source"].outcomes if each.link.theirs["source"] is not None else ()
        return (each.second, each.state, each.remote_settled, each.complete, each.txn, each.control, offered)

    def number_after(self, session: Session, each: Incoming | Delivery) -> int:
        """The number of the delivery that a disposition may name together with this one."""
        return (each.number + 1) & WRAP

    def receiver_disposition(self, session: Session, first: Incoming) -> None:
        chosen = [first]
        while self.chance(0.7) and first.control is None:
            following = session.received.get(self.number_after(session, chosen[-1]))
            if (
                following is None
                or not self.answerable(following)
                or self.kind(following) != self.kind(first)
            ):
                break
            chosen.append(following)
        state = first.state
        settled = False
        source = first.link.theirs["source"]
        outcomes = OUTCOMES if source is None or not source.outcomes else source.outcomes
        if first.control is not None and first.complete:
            settled = True
            state = self.control_outcome(first.control)
        elif not first.complete:
            state = "received"
        elif first.txn is not None:
            state, settled = self.posting_outcome(first, outcomes)
        elif state in OUTCOMES:
            settled = True  # mode first, or second and settled by the sender
        elif first.second:
            state = "received" if state is None and self.chance(0.2) else self.random.choice(outcomes)
        else:
            state = self.random.choice(outcomes)
            settled = self.chance(0.8)
            if self.at_work() and self.chance(0.3):
                state = ("transactional", self.random.choice(self.at_work()), state)
                settled = True
        for each in chosen:
            each.state = state
            each.settled = settled
        self.dispose(session, RECEIVER, first.number, chosen[-1].number, settled, state)

    def control_outcome(self, control: tuple[Any, ...]) -> State:
        """What a coordinator says of a declare or a discharge."""
        if control[0] == "discharge":
            # "the coordinator MUST always be able to complete a discharge where the fail flag is set to true"
            refused = not control[2] and self.chance(0.1)
            self.over[control[1]] = not control[2] and not refused
            return "failed" if refused else "accepted"
        if self.chance(0.1):
            return "failed"
        self.declared += 1
        return ("declared", b"txn%d" % self.declared)

    def posting_outcome(self, each: Incoming, outcomes: tuple[str, ...]) -> tuple[State, bool]:
        """What is said of a delivery under a transaction, and whether it is settled by that."""
        assert each.txn is not None
        if self.side == CLIENT:
            # Acquired: "An outcome sent by the controller before the transaction has discharged MUST be
            # associated with the same transaction."
            settles = not each.second or each.remote_settled
            before = each.state[2] if isinstance(each.state, tuple) else each.state
            if before not in OUTCOMES:
                before = self.random.choice(outcomes)
            if each.txn in self.live:
                return ("transactional", each.txn, before), settles and self.chance(0.7)
            return before, settles
        committed = self.over.get(each.txn)
        if committed is False:
            return None, not each.second or each.remote_settled
        if isinstance(each.state, tuple):
            # The promised outcome, then the one that was applied.
            return each.state[2] if committed else each.state, not each.second or each.remote_settled
        if committed:
            return None, not each.second or each.remote_settled  # its link was detached at the commit
        return ("transactional", each.txn, self.random.choice(outcomes)), not each.second and self.chance(0.7)

    def sender_disposition(self, session: Session, first: Delivery) -> None:
        if first.remote_settled and self.chance(0.8):
            # Settles in silence: the receiver has settled already.
            del session.sent[first.number]
            first.link.spent.append(first.tag)
            return
        chosen = [first]
        while self.chance(0.7):
            following = session.sent.get(self.number_after(session, chosen[-1]))
            if following is None or not following.link.live or following.remote_state != first.remote_state:
                break
            chosen.append(following)
        for each in chosen:
            del session.sent[each.number]
            if each.remote_settled:
                each.link.spent.append(each.tag)
        # `received` is the receiver's to say: of a sender, only on the first transfer of a resumed delivery.
        repeated = first.remote_state if first.remote_state in OUTCOMES else None
        state = repeated if self.chance(0.7) else None
        self.dispose(session, SENDER, first.number, chosen[-1].number, True, state)

    def dispose(
        self, session: Session, role: bool, first: int, last: int, settled: bool, state: State
    ) -> None:
        assert session.out is not None
        self.say(
            "disposition",
            session.out,
            role=role,
            first=first,
            last=None if last == first and self.chance(0.5) else last,
            settled=settled or None,
            state=state,
        )

    # ---- hearing ------------------------------------------------------------------------------------------

    def hear(self, said: Said) -> None:
        """The program reads a frame of the other peer's."""
        name, fields = said.name, said.fields
        if name == "header":
            if fields["id"] == 3:
                self.sasl_heard.append("header")
            else:
                self.header_heard = True
        elif name.startswith("sasl-"):
            self.sasl_heard.append(name)
            if name == "sasl-outcome":
                self.sasl_done = True
                self.failed = fields["code"] != 0
        elif name == "open":
            self.peer_open = fields
        elif name == "close":
            self.close_heard = True
        elif name == "empty" or self.discarding:
            pass
        elif name == "begin":
            self.hear_begin(said)
        else:
            session = self.incoming.get(said.channel)
            if session is None:
                return  # only after a planted fault
            if name == "end":
                self.hear_end(said, session)
            elif not session.discarding:
                getattr(self, "hear_" + name)(session, fields)

    def hear_begin(self, said: Said) -> None:
        fields = said.fields
        remote = fields["remote_channel"]
        if remote is None:
            session = self.new_session(f"{NAMES[1 - self.side][0]}{self.peer_begun}")
            self.peer_begun += 1
        else:
            waiting = self.awaiting.get(remote)
            if not waiting:
                return  # only after a planted fault
            session = waiting.pop(0)
        session.into = said.channel
        session.begin_heard = True
        session.next_in = fields["next_outgoing_id"]
        self.bound(session, session.initial_out + fields["incoming_window"])
        if fields["handle_max"] is not None:
            session.peer_handle_max = fields["handle_max"]
        self.incoming[said.channel] = session

    @staticmethod
    def bound(session: Session, bound: int) -> None:
        session.largest_bound = bound if session.bound is None else max(session.largest_bound, bound)
        session.bound = bound

    def hear_end(self, said: Said, session: Session) -> None:
        session.end_heard = True
        del self.incoming[said.channel]
        if session.out is not None and session.early:
            self.unsafe.discard(session.out)
        self.without_control(list(session.links.values()))
        for link in session.links.values():
            link.peer_handle = None

    def hear_flow(self, session: Session, fields: Fields) -> None:
        window = fields["incoming_window"]
        known = fields["next_incoming_id"]
        if known is None:
            self.bound(session, session.initial_out + window)
        else:
            behind = (session.next_out - known) & WRAP
            self.bound(session, session.next_out - behind + window)
        session.echo = session.echo or bool(fields.get("echo"))
        handle = fields.get("handle")
        if handle is None:
            return
        link = session.peer_handles.get(handle)
        if link is None:
            return  # only after a planted fault
        if link.errored:
            session.must_end = "amqp:session:errant-link"
        elif link.sender:
            self.hear_credit(link, fields)
        elif fields["delivery_count"] is not None:
            link.vague = link.vague or link.receiving is not None
            if link.known is not None:
                ahead = (fields["delivery_count"] - link.known) & WRAP
                link.known += ahead if ahead < 1 << 31 else ahead - (1 << 32)
            link.available = fields["available"]
            link.credit = fields["link_credit"] or 0

    def hear_credit(self, link: Link, fields: Fields) -> None:
        """ "link-credit := delivery-count(rcv) + link-credit(rcv) - delivery-count(snd)"."""
        credit = fields["link_credit"]
        if credit is None:
            return
        known = fields["delivery_count"]
        if link.attaches < link.peer_attaches:
            # Not attached yet: counts from the delivery-count that the attach will carry.
            if known is None and link.attaches == 0:
                link.pending = credit
            return
        if link.attaches > link.peer_attaches:
            return  # from before a re-attach of this end's
        link.drain = bool(fields.get("drain"))
        for wanted in (fields.get("properties") or {}).values():
            link.acquires = wanted[2:]
        if known is None:
            self.grant(link, link.base + credit)
        else:
            behind = (link.count - known) & WRAP
            if behind >= 1 << 31:
                behind -= 1 << 32  # the receiver has counted a delivery twice that this end reported begun
            self.grant(link, link.count - behind + credit)

    def hear_attach(self, session: Session, fields: Fields) -> None:
        link = self.link_end(session, fields["name"], fields["role"] is RECEIVER)
        if link.errored:
            session.must_end = "amqp:session:errant-link"
            return
        link.peer_attaches += 1
        link.tangled = link.tangled or (link.handle is not None and link.peer_attaches > link.attaches)
        link.peer_handle = fields["handle"]
        link.theirs = fields
        session.peer_handles[fields["handle"]] = link
        if link.sender:
            link.limit = None
            link.grants = 0
        else:
            link.known = fields["initial_delivery_count"]
            link.available = None
            link.credit = 0

    def hear_detach(self, session: Session, fields: Fields) -> None:
        link = session.peer_handles.pop(fields["handle"], None)
        if link is None:
            return  # of a link that an errant attach did not make
        self.without_control([link])
        link.peer_handle = None
        link.peer_closed = link.peer_closed or bool(fields["closed"])
        link.peer_errored = link.peer_errored or fields["error"] is not None
        link.limit = None
        if link.open is not None:
            link.broken = True

    def hear_transfer(self, session: Session, fields: Fields) -> None:
        session.next_in += 1
        session.window_left -= 1
        link = session.peer_handles.get(fields["handle"])
        if link is None:
            return  # only after a planted fault
        if link.errored:
            session.must_end = "amqp:session:errant-link"
            return
        delivery = link.receiving
        if delivery is None:
            second = link.mine.get("rcv_settle_mode") == 1
            if fields.get("rcv_settle_mode") == 0:
                second = False
            delivery = Incoming(link, fields["delivery_id"], second, tag=fields["delivery_tag"])
            delivery.control = self.talk.controls.get((session.key, 1 - self.side, delivery.number))
            state = fields.get("state")
            if isinstance(state, tuple):
                delivery.txn = state[1]
            if fields.get("resume") and delivery.tag in link.kept:
                delivery.state = link.kept.pop(delivery.tag).state
            session.received[delivery.number] = delivery
            link.receiving = delivery
            link.credit -= 1
            if link.known is not None and not self.character.counts_late:
                link.known += 1
            if link.available:
                link.available -= 1
        if fields["settled"]:
            delivery.sent_settled = True
        if fields.get("aborted"):
            delivery.aborted = True
            link.receiving = None
            if link.known is not None and self.character.counts_late and self.character.counts_aborted:
                link.known += 1
        elif not fields.get("more"):
            delivery.complete = True
            link.receiving = None
            if delivery.control is not None and delivery.control[0] == "discharge":
                # "When a transaction is discharged, the txn-id of any link endpoints will be cleared."
                for every in self.sessions:
                    for other in every.links.values():
                        if other.acquires == delivery.control[1]:
                            other.acquires = None
            if link.known is not None and self.character.counts_late:
                link.known += 1

    def hear_disposition(self, session: Session, fields: Fields) -> None:
        first = fields["first"]
        last = first if fields["last"] is None else fields["last"]
        about: dict[int, Any] = session.sent if fields["role"] is RECEIVER else session.received
        for number, each in list(about.items()):
            if (number - first) & WRAP > (last - first) & WRAP:
                continue
            if each.link.errored:
                session.must_end = "amqp:session:errant-link"
            if fields["settled"]:
                each.remote_settled = True
            if fields["role"] is RECEIVER and fields["state"] is not None:
                each.remote_state = fields["state"]
                if fields["state"][0] == "declared" and each.control is not None:
                    self.live.append(fields["state"][1])
