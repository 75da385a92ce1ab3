"""Every bound of the analysis, in one place, each with its reason.

The bounds of the dissectors stand beside them, in `dissectors/limits.py`.
"""

from typing import Final

# capture/

MAX_PACKET: Final = 262_144
"""Captured octets of one packet that are believed of a file whose snapshot length is not larger. It is
the largest snapshot length libpcap accepts; a record header that claims more is damage."""

MAX_LARGE_PACKET: Final = 1_048_576
"""The same for a file whose header declares a larger snapshot length (or a nonsensical one), and the length
on the wire believed of a packet whose own length fields are 0. Twice what Linux joins into one IPv6 packet
on loopback (BIG TCP, 512 KiB)."""

MAX_ZSTD_WINDOW: Final = 25
"""Of a zstd frame, as a power of two: 32 MiB. It is the only memory that a compressed file can ask for, and
with it all of a capture takes no more than 64 MiB. Levels up to 19 ask for 8 MiB, 20 for 32. Files of
`--long` and `--ultra -22` ask for 128 MiB; they are legal, and the note about one says how to read it."""

MAX_BLOCK: Final = 16 * 1024 * 1024
"""Octets of one pcapng block. A block is held whole before it is looked at; Wireshark refuses larger ones."""

MAX_INTERFACES: Final = 4096
"""Interfaces remembered of one pcapng section. Packets of later ones are counted and not decoded."""

MAX_TIME: Final = 8_000_000_000_000_000_000
"""Nanoseconds since 1970, in the year 2223. Later times (pcapng has 64 bits of any unit) are set to this:
below 2**63 by enough that time-outs can be added to it and two times subtracted."""

BACKWARDS: Final = 1_000_000_000
"""Nanoseconds by which a packet may be earlier than the one before it without a word. The interfaces of one
capture, and the parts of a merged one, are out of step by milliseconds."""

MAX_NOTES: Final = 4
"""Notes of one code that are passed on one by one; the rest is counted and reported once, at the end."""

MAX_LOG_LINE: Final = 8 * 1024 * 1024
"""Octets of one line of a log. rhea prints a frame as hexadecimal digits in one line, so this is a frame of
4 MiB; the rest of a longer line is passed over."""

MAX_LOG_FRAME: Final = 4 * 1024 * 1024
"""Octets of one frame in a log, for the same reason."""

MAX_LOG_TUPLE: Final = 64 * 1024
"""Characters of a line in which a frame stands as a named tuple of Python. Payload is not printed, so frames
of real peers have up to two thousand; reading a tuple takes a hundred times as much memory."""

MAX_LOG_SAMPLE: Final = 1024 * 1024
"""Octets of a file in which a line of a known log is looked for. A service prints its configuration before it
connects, and has connected after so much."""

MAX_LOG_CONNECTIONS: Final = 50_000
"""Connections of one log. Each is given a port of its own."""

MAX_LOG_OPENING: Final = 8
"""Entries of a connection that wait until it is known who the client is. There are at most four protocol
headers before the first frame."""

MAX_LOG_HELD: Final = 256
"""Entries of one sender that wait for the line of the other one that should have stood before them. That line
is the next one of its thread, so hardly any others come in between."""

MAX_TRACED_FIELDS: Final = 32
"""Fields of a message that a broker has traced. There are ten."""

MAX_TRACED_LINES: Final = 10_000
"""Lines of one field of such a message. Its properties have a line for each."""

MAX_TRACED_OCTETS: Final = 1024 * 1024
"""Octets of all fields of such a message. A line of the log may have MAX_LOG_LINE."""

MAX_TRACED_NAMES: Final = 1000
"""Routing keys, queues, and marks of one list in a traced message; characters of a property that is kept."""

MAX_TRACED_ROUTES: Final = 1000
"""Routes of traced messages that a summary has: exchange, routing keys and queues."""

MAX_LOG_DEPTH: Final = 40
"""Values within one another in a line of a log. Frames of real peers have up to five."""

MAX_LINK_TYPES: Final = 16
"""Unknown link types that get a note of their own. Real files have one or two link types in all."""

MAX_KNOWN_FLOWS: Final = 4096
"""Flow keys whose reverse is remembered, so that it need not be put together for each packet. When full
it is emptied: it only saves time, and hardly any where so many connections speak at once."""

MAX_EXTENSION_HEADERS: Final = 16
"""IPv6 extension headers walked in one packet. Senders use up to four (RFC 8200, section 4.1)."""

MAX_MERGE_OPEN: Final = 128
"""Files read at the same time when several are one capture; what waits of each is below 1 MiB. Rotated sets
need two, taps one each."""

FRAGMENT_TIME: Final = 30_000_000_000
"""Nanoseconds after which a datagram that is not complete is given up. What Linux waits; RFC 8200 says 60 s,
but by then IPv4 has given its 16 bits of identification to another one."""

FRAGMENT_DATAGRAMS: Final = 1024
"""Datagrams that wait for fragments. Senders put the fragments of one behind one another."""

FRAGMENT_OCTETS: Final = 4 * 1024 * 1024
"""Octets of them: what Linux holds. With the marks it is twice that."""

MAX_NESTING: Final = 8
"""Datagrams within one another in one packet. Real ones have two or three."""

SEARCH_CHAIN: Final = 5
"""Records that must follow one another before a place behind damage is believed to be a record. One
header passes by chance once in some 2**30 places, so five are beyond chance, and few enough to be found
between two damages."""

SEARCH_REACH: Final = 65_536 + 256
"""Octets behind the damage that a chain of records has to reach, so that a capture file carried as the
payload of the damaged packet is not taken for this one. Packets above 64 KiB are rare; much more would lose
what lies between two damages near each other."""

SEARCH_TAIL: Final = 3
"""Records that are enough when the last of them ends where the file does. One or two that fit are found by
chance in the small numbers that headers are made of."""

SEARCH_TIME_JUMP: Final = 31 * 24 * 60 * 60
"""Seconds between the records of a chain, either way. Captures pause for days; numbers that are no times are
mostly further apart."""

SEARCH_WIRE: Final = 16 * 1024 * 1024
"""Octets on the wire that a record found behind damage may claim: far above any real packet."""

SEARCH_OCTETS: Final = 64 * 1024 * 1024
"""Octets searched behind one damage. Then the file is given up: it is damaged beyond a bad disk block."""

SEARCH_STEPS: Final = 1_000_000
"""Record headers looked at in all chains of one file. A damage takes about a thousand; octets made such that
a long chain starts at each of them would take for ever."""

# capture/recording/

RECORDING_CHUNK: Final = 256 * 1024
"""Octets of packets that are written at once. Larger ones save nothing more."""

RECORDING_SPAN: Final = 100_000_000
"""Nanoseconds from the first to the last packet of such a chunk, which is written or forgotten as a whole."""

RECORDING_HOLD: Final = 1_000_000_000
"""Nanoseconds that a packet stays in hand before it is written, so that a finding can be put beside it. Most
are made when the other peer acknowledges or answers: a round trip."""

RECORDING_HOLD_OCTETS: Final = 32 * 1024 * 1024
"""Octets of packets in hand, at most. Where they come so fast findings come fast, too."""

RECORDING_LATE: Final = 6_000_000_000
"""Nanoseconds for which a flight recorder keeps packets longer than it was asked to, so that the whole time
before a finding is there, which may be made only once missing octets were given up (REASSEMBLY_LIVE_WAIT)."""

RECORDING_BEFORE: Final = 128 * 1024 * 1024
"""Octets of packets that a flight recorder keeps, if nothing else is said: ten seconds of 100 Mbit/s."""

MAX_COMMENT: Final = 1000
"""Octets of one comment in a recorded file. Messages of findings have some 200."""

MAX_PACKET_COMMENTS: Final = 3072
"""Octets of all comments of a packet: with 4096 octets of options a reader would not find the packet again
behind damage."""

MAX_COMMENTS_HELD: Final = 4 * 1024 * 1024
"""Octets of comments on packets in hand: some 10,000 findings within a second."""

# reassembly/

REASSEMBLY_COPIES_REACH: Final = 62
"""Datagrams of a direction by which a second tap may lag behind the first: so many bits tell of which of the
last identifications there was a datagram. What lags by more counts as sent again."""

MAX_STALLS: Final = 64
"""Times kept of one direction in which its sender could not write; then two become one. A receiver that takes
nothing closes its window once; one that is slow opens and closes it by the second, which excuses it all."""

SEQUENCE_WINDOW: Final = 1 << 30
"""Octets around the expected place within which a sequence or acknowledgement number is believed: the
largest window TCP can have (RFC 7323, section 2.3: 65,535 scaled by at most 2**14, below 2**30)."""

REASSEMBLY_WAITING_OCTETS: Final = 16 * 1024 * 1024
"""Payload octets of one direction that wait for missing ones. Above the receive buffers systems grow to
by default (6 MiB on Linux), so that all that was in flight before a retransmission fits."""

REASSEMBLY_WAITING_PIECES: Final = 16_384
"""Pieces of one direction that wait. 16 MiB in segments of 1 KiB; keeps what each piece costs beside its
octets below 4 MiB."""

REASSEMBLY_REORDER_SEGMENTS: Final = 64
"""Segments of a direction that may pass before octets its peer has acknowledged, but the capture does
not show, are given up. Capture cards, bonded links and mirror ports reorder by a few packets."""

PROBE_QUIET: Final = 1_000_000_000
"""Nanoseconds without a segment of a direction after which its TCP may probe whether the peer is alive. The
options of sockets count in seconds."""

REASSEMBLY_REORDER_TIME: Final = 1_000_000_000
"""The same in nanoseconds of the direction's own time stamps, for a direction with few segments."""

REASSEMBLY_LAG_SEGMENTS: Final = 8192
"""The same for a direction that the capture shows later than the other, so that an acknowledgement can
be seen before the retransmission it is for. A sender that lost a segment sends the rest of its window
first: 6 MiB in segments of 1448 octets are 4345. Below `REASSEMBLY_WAITING_PIECES`."""

REASSEMBLY_LAG_TIME: Final = 60_000_000_000
"""The same in nanoseconds: retransmission time-outs may grow to this (RFC 6298, section 2.5)."""

REASSEMBLY_LIVE_WAIT: Final = 5_000_000_000
"""Nanoseconds after which a live capture stops waiting for missing octets. Longer than the first three
retransmissions after 1 s (RFC 6298), short enough for someone who watches."""

REASSEMBLY_RECENT_OCTETS: Final = 16 * 1024
"""Octets of a direction kept after they were passed on, so that a second copy can be compared with the
first. What is in flight on one AMQP connection is mostly less; the memory is taken by every connection."""

REASSEMBLY_RECENT_SEGMENTS: Final = 64
"""Segments whose octets are kept for that. A power of two: they stand in a ring."""

REASSEMBLY_RECENT_GAPS: Final = 16
"""Gaps remembered of a direction, to tell octets that came too late from octets sent twice."""

REASSEMBLY_OVERLAP_NOTES: Final = 4
"""Notes of one direction about second copies that differ. The rest is only counted."""

REASSEMBLY_STRAYS: Final = 8
"""Segments that must follow one another outside the window before the stream is taken up there. Fewer
could be an old connection's remains; with none, a direction that lost 2**30 octets would be deaf for ever."""

NEW_CONNECTION_SILENCE: Final = 60_000_000_000
"""Nanoseconds of silence after which, without SYN, a jump in sequence is another connection on the same
ports. The time TIME-WAIT keeps ports from being used again on common systems."""

NEW_CONNECTION_JUMP: Final = 16 * 1024 * 1024
"""Octets that jump must have. After a silence nothing is in flight, so the same connection continues
at the expected place; what is further away than reassembly could bridge is as well begun anew."""

NEW_CONNECTION_HEADER: Final = 65_536
"""Octets from a stream's begin, and from where it is, beyond which a protocol header is that of another
connection on the same ports. What comes before a second header on one connection is a handful of SASL frames
of 512 octets at most, or a TLS handshake."""

# analysis

MAX_UNDECIDED: Final = 64 * 1024
"""Octets of a direction kept while its protocol is not decided, and those in which a frame is searched
behind an opening that nothing is known to have. An opening that has reported nothing by then tells
nothing."""

MAX_LAYERS: Final = 8
"""Layers between TCP and AMQP, one in the other. Real ones have three: PROXY, TLS, WebSocket."""

MAX_LAYER_OPENING: Final = 16_384
"""First octets of a direction by which a layer is recognised. The longest opening is an HTTP request for
WebSocket with a token: some thousands."""

MAX_LAYER_HELD: Final = 256 * 1024
"""Octets of a connection that are held while it is open which layer begins: what both peers send until they
have read the other one's first octets."""

MAX_TLS_SECRETS: Final = 262_144
"""TLS secrets kept, of about 300 octets each; then the oldest are forgotten. A connection has up to five, so
that the newest 50,000 connections of a key log can be read."""

MAX_TLS_SESSIONS: Final = 16_384
"""Sessions opened with a server's private key of which a resumption can be read; the oldest are forgotten. A
name is a ticket of some 200 octets, 64 KiB at most."""

MAX_TLS_RECORD: Final = 16_384 + 2048
"""Octets of the body of a TLS record (RFC 5246, section 6.2.3). A larger one is none."""

MAX_TLS_HANDSHAKE: Final = 128 * 1024
"""Octets of one TLS handshake message. Chains of certificates have some kilobytes; OpenSSL takes 100 KiB."""

MAX_TLS_LOST_RECORDS: Final = 1024
"""Record numbers that are tried behind lost octets: records of 64 octets in 64 KiB, or 16 MiB of large ones.
"""

MAX_TLS_TRIALS: Final = 65_536
"""Attempts to open a record behind lost octets, of one direction, that fail before only the next numbers are
tried: some tenths of a second. What looks like the header of a record and is none comes by chance once in 64
MiB.
"""

MAX_TLS_TRIALS_ALL: Final = 4_000_000
"""The same of all connections of a capture: some ten seconds."""

MAX_TLS_JOIN_CONNECTIONS: Final = 512
"""Connections of key logs whose secrets are tried on a TLS connection whose client random is not known, the
newest first: 0.1 s for each record that is tried."""

MAX_TLS_JOIN_RECORDS: Final = 4
"""Records of a direction that are tried then. The first ones may be of the handshake, or none at all."""

MAX_TLS_JOIN_NUMBERS: Final = 32_768
"""Record numbers that are guessed where the suite does not show the number, of all secrets together: about a
second."""

MAX_TLS_JOIN_GUESSES: Final = 2
"""Records of a direction for which numbers are guessed."""

MAX_TLS_JOIN_UPDATES: Final = 1
"""How often keys may have been updated before the capture began. Few programs ever do."""

MAX_TLS_JOIN_TRIALS_ALL: Final = 250_000
"""Attempts to find the secrets of TLS connections whose client random is not known, of all connections of a
capture: some twenty seconds."""

MAX_TLS_FAILED_RECORDS: Final = 64
"""Records in a row that do not authenticate, after which a direction is given up: the secret is another
one's.
"""

MAX_LAYER_PLACES: Final = 16_384
"""Places of a layer's stream of which it is known where their octets stand in TCP, so that acknowledgements
can be translated. A peer has few unacknowledged records; a frame may go over a thousand.
"""

MAX_TLS_WAITING: Final = 1024 * 1024
"""Octets of a TLS connection that wait for secrets which are still to be written. Programs write them during
the handshake.
"""

MAX_TLS_WAITING_ALL: Final = 64 * 1024 * 1024
"""The same of all connections of a capture."""

MAX_TLS_EARLY: Final = 64 * 1024
"""Octets of 0-RTT data of a connection held until it is known whether the server took them. Servers allow
16 KiB."""

MAX_SEALED_SHOWN: Final = 1000
"""Connections in TLS without a frame that `read` shows. Nobody reads more of them."""

MAX_TLS_ALERTS: Final = 8
"""Alerts of one TLS connection that are reported. One ends the connection, or two."""

MAX_TLS_NAMES: Final = 16
"""Names of one certificate that are reported."""

MAX_INFLATED: Final = 64 * 1024 * 1024
"""Octets that the compressed WebSocket messages of a direction may have whatever they are made of."""

MAX_INFLATED_RATIO: Final = 100
"""Octets beyond these for each compressed octet. Deflate reaches 1032; messages reach 20."""

MAX_INFLATE_KEPT: Final = 1024 * 1024
"""Octets of a compressed WebSocket message that are kept, so that another process can continue it."""

MAX_WEBSOCKET_CLOSES: Final = 4
"""Close frames of one connection that are reported. Each peer sends one."""

MAX_WAITING_RECORDS: Final = 8
"""Records of one connection that wait until it is known who the client is. Both sides' protocol headers and
what was skipped around them are four."""

MAX_LINGERING: Final = 2048
"""Ended connections that are still known by their ports, for late segments. What TIME-WAIT does in a
host, by number instead of time."""

MAX_OPEN_CONNECTIONS: Final = 28_672
"""Connections followed at a time. Each takes some 3.5 KiB before it says anything, and up to 13 KiB when it
was opened, so that `check`, `read`, `summary` and `why` stay below 400 MB. Beyond the bound, those that were
silent longest are given up: mostly ends that were not captured."""

ENDED_AT_ONCE: Final = 1024
"""Connections that the end of a capture ends before what is found on them is given out."""

MAX_SILENT_CONNECTIONS: Final = 8192
"""Of them those that never said anything, of which nothing would be lost but where they began: 28 MiB. They
are attempts that nobody answered, by the million where somebody floods; a host lets fewer of them wait."""

MAX_OTHER_CONNECTIONS: Final = 4096
"""Connections without AMQP that are kept to be listed, where all are; of more the number is reported. A scan
of the ports of a network gives a million of them, and nobody reads more."""

MAX_PAIRS: Final = 65_536
"""Pairs of ends without a connection whose last number is remembered, so that the next one between them gets
the next. More than the ports of a host, so that a client which uses one after the other is distinguished."""

MAX_CAPTURE_NOTES: Final = 1000
"""Notes of one code that are passed on of one capture, beside MAX_NOTES of each connection. The rest is
counted and reported at the end: a capture that lost packets has lost them on all of its connections."""

# watching

LIVE_ENDED: Final = 60_000_000_000
"""Nanoseconds after which a live capture forgets a connection that has ended: TIME-WAIT of common systems."""

LIVE_NEVER_SPOKE: Final = 120_000_000_000
"""Nanoseconds of silence after which it gives up one that never said anything. Systems try for two minutes to
open a connection, and servers close one that does not speak after ten to thirty seconds."""

LIVE_SILENT: Final = 24 * 60 * 60 * 1_000_000_000
"""The same of one that did. Without heartbeats a connection may rest for a night and be in order; a client
that was switched off never says so. There are no more of them than MAX_OPEN_CONNECTIONS at any time."""

LIVE_TICK: Final = 1_000_000_000
"""Nanoseconds after which a live capture looks at what time alone brings. It goes through all connections."""

MAX_LOOKED_AT: Final = 1000
"""Connections of a live capture that are looked at in one second for waits that last. The others follow."""

MAX_OVERDUE: Final = 4096
"""Silent peers that are remembered as reported. More of them are one fault: of the network, or of the
capture."""

LIVE_BEHIND: Final = 0.25
"""Share of the kernel's buffer that waits from which on frames of a live capture are not shown any more: what
it takes to show one is many times what it takes to judge it."""

OUTLET_OCTETS: Final = 4 * 1024 * 1024
"""Octets of text that wait for a slow terminal or pipe: some 40,000 lines, more than anybody scrolls back."""

OUTLET_PATIENCE: Final = 2.0
"""Seconds that a command which ends waits for its last text to be taken."""

# tracking

MAX_LIMITS: Final = 1024
"""Credits or windows of which any may be the one in force that a sender knows of. Receivers that raise them
for every message do so a few hundred times before an answer shows what was read."""

MAX_UNPROVED: Final = 4096
"""Transfers of a session whose place in the stream is kept until the receiver's counters prove that it
has processed them. A receiver that never says so loses older proofs: verdicts get milder, not wrong."""

SHORT_STRETCH: Final = 10_000_000
"""Nanoseconds without a frame that need not be remembered to tell what a silence is worth: a tenth of what
is always allowed an idle peer."""

MAX_SILENCES: Final = 8
"""Long silences that are remembered of an AMQP 0-9-1 peer. Few frames come until an end is judged."""

MAX_STRETCHES: Final = 64
"""Stretches without a frame that are remembered of a connection, each longer than those after it."""

MAX_SPANS: Final = 32
"""Stretches of delivery-ids that a receiver settled, kept to see whether it settles one again. In order they
are one stretch; of a receiver that settles at random the oldest are forgotten."""

MAX_STATED: Final = 4096
"""Deliveries of a session whose outcome a receiver has stated and not settled, kept to see whether it changes
it. Of more the later ones are not judged."""

MAX_UNANSWERED: Final = 1024
"""Begins on one channel that wait for their answers. Nobody ends and begins a session so often unheard."""

MAX_INBOX: Final = 16_384
"""Frames on their way to an endpoint that has not shown to have received them. More is a direction of
which hardly anything was captured."""

MAX_TRANSACTIONS: Final = 4096
"""Transactions of a connection that are declared and not over, requests on a session's control links without
an answer, and control links. Beyond, transactions are not judged."""

MAX_OVER_TRANSACTIONS: Final = 1024
"""Transactions that are over and still known, to say so of one that is named again. Of older ones that is as
true as if they had never been."""

MAX_WORK: Final = 4096
"""Deliveries under transactions, and links that ask for some, that nobody has settled. A transaction has
hundreds. Beyond, transactions are not judged."""

MAX_ASKED: Final = 64
"""Transactions under which one link was to send, of which any may be the one that its sender knows of."""

MAX_LINK_ACCOUNTS: Final = 4096
"""Links of one connection of which it is kept how they were attached and what they left, for a later one."""

MAX_LEFT: Final = 64
"""Deliveries of one link kept for that: one that is missing is enough. A longer map counts as incomplete."""

MAX_SNAPSHOT_LINKS: Final = 256
"""Links of a connection's snapshot, and channels of one of AMQP 0-9-1, and consumers of a channel. Nobody
reads more at a time."""

MAX_SNAPSHOT_DELIVERIES: Final = 65_536
"""Deliveries of a session that a snapshot looks through to tell how many of each link are unsettled; one is
made every second. Those beyond are only in the session's count."""

MAX_CHANNELS: Final = 65_535
"""Channels of one AMQP 0-9-1 connection: as many as their numbers allow."""

MAX_HEADERS: Final = 8
"""Protocol headers of one AMQP 0-9-1 connection that are remembered. There is one of each peer at most."""

MAX_UNACKNOWLEDGED: Final = 65_536
"""Deliveries of one AMQP 0-9-1 channel that are not acknowledged: as many as a prefetch-count can allow. Of a
consumer without one that never acknowledges the oldest are forgotten, and what rests on them is silent."""

MAX_UNCONFIRMED: Final = 65_536
"""Messages published on one AMQP 0-9-1 channel that are not confirmed yet."""

MAX_FLAGGED: Final = 1024
"""Messages of one AMQP 0-9-1 channel that may still be returned. One that was routed says so only by a
confirm, so they are kept until others push them out."""

MAX_PENDING_EXCHANGES: Final = 64
"""Exchanges published to on one AMQP 0-9-1 channel without any answer. A publisher knows a few."""

MAX_REQUESTS: Final = 256
"""Requests of one AMQP 0-9-1 channel that wait for their answer. Clients that do not wait for each have a few
dozen, declaring what they use."""

MAX_CONSUMERS: Final = 4096
"""Consumers of one AMQP 0-9-1 channel, and as many that were cancelled. Real ones have some hundred."""

# rules

MAX_COMPARED_CONSUMERS: Final = 64
"""Consumers of one queue that are looked at for one that wants to be the only one; mostly the first tells."""

MAX_COMPARED_CHANNELS: Final = 64
"""Channels that are searched for a delivery or a consumer that a frame names on a channel that has none."""

ANSWER_PATIENCE: Final = 60_000_000_000
"""Nanoseconds after which a question that was read and not answered is worth a word. Nothing in the
specification says how long an answer may take; clients give up after half of it."""

HEADER_PATIENCE: Final = 60_000_000_000
"""Nanoseconds that a client's protocol header may come after the server's. At once, the specification says;
a round trip and a slow program take far less than this."""

HEARTBEAT_SLACK: Final = 100_000_000
"""Nanoseconds that an AMQP 0-9-1 peer may be silent beyond the heartbeat delay, if a tenth of that is not
more: what timers and the way to the capture take."""

SOCKET_PATIENCE: Final = 120_000_000_000
"""Nanoseconds after the answer to its close in which an AMQP 0-9-1 peer should have closed its socket. At
once, the specification says; RabbitMQ waits for half a minute."""

CLOSE_PATIENCE: Final = 300_000_000_000
"""Nanoseconds after which a peer that still waits for the other one's close should have given up. The
specification gives no number; libraries wait for a minute at most."""

MAX_FLOW_UNANSWERED: Final = 30_000_000_000
"""Nanoseconds within which a peer that sends content has to notice channel.flow of AMQP 0-9-1. The
specification says "promptly"."""

MAX_CLOSE_UNANSWERED: Final = 30_000_000_000
"""Nanoseconds that a peer may be busy before it answers the close of a channel of AMQP 0-9-1. Brokers
answer in milliseconds; one that is under load takes some seconds."""

MAX_FILTERS: Final = 16
"""Filters of a source, and entries of one, that messages are compared with: every message is against each of
them. Receivers have one or two."""

MAX_REFUSED: Final = 64
"""Deliveries of a link, the newest, among which the one is looked for that a receiver detaches over."""

MAX_PEER_ERRORS: Final = 8
"""Errors of one connection, the newest, that are remembered for faults that show only behind them. Most show
at once; a connection ends with its first error, or goes on after those of a few links or channels."""

MAX_CONDITION: Final = 1024
"""Characters that are kept of the condition of an error. Those of the specification and of products have some
40; anybody can send one that fills a frame."""

MAX_KEPT_EXCERPTS: Final = 512
"""Requests of all AMQP 0-9-1 connections of a capture whose surroundings are kept, some kilobytes each, for
what only the virtual host shows. Findings beyond them are reported without."""

MAX_WITHOUT_REACTION: Final = 64
"""Findings of one connection that wait for the other peer's reaction. It mostly comes within a round trip;
of more the oldest are given out without."""

MAX_GARBLED: Final = 16
"""Garbled frames of a connection whose places are kept: what their receivers do meanwhile is not certain."""

CONTEXT_BEFORE: Final = 3
CONTEXT_AFTER: Final = 2
"""Frames of the connection shown before and after an offending one."""

CONTEXT_KEPT: Final = 8
"""Frames of a connection that are kept to be shown around a later finding: of a request that is refused, some
frames lie between the two."""

CONTEXT_OCTETS: Final = 4096
"""Octets of such a frame, or of the message it completes, that are kept to be shown."""

MAX_HANDLES_SEARCHED: Final = 256
"""Handles of a session among which the lowest free one is looked for at each attach. Who has more attaches
ten thousand times, and each would look through all."""

MAX_SESSIONS_SEARCHED: Final = 256
"""Sessions of a connection that are looked through at each attach, and at each begin. Nobody has so many who
means well; with 65,535 of them ten thousand attaches would take minutes."""

REFUSAL_TIME: Final = 1_000_000_000
"""Nanoseconds within which a detach behind the attach that answers is taken for a refusal."""

MAX_VIOLATIONS: Final = 16
"""Faults of one peer whose answer the other one still owes. More are not waited for: who has not answered
these answers none."""

# correlation

MAX_CORRELATED_LINKS: Final = 16_384
"""Links of one capture set of which that is kept: some 80 MiB if all have as many deliveries as are kept."""

MAX_PASSAGES: Final = 64
"""Messages of each direction of a connection that are compared with those on other connections. A broker that
changes messages changes the first, too."""

MAX_PASSED_OCTETS: Final = 65_536
"""Octets of such a message. Whether a larger one was changed costs more than it tells."""

MAX_PASSED_HEADER: Final = 512
"""Octets of its header, and of its properties, that are kept to be read. Of longer ones there
is a checksum."""

MAX_CORRELATED_MESSAGES: Final = 8192
"""Such messages of one capture set: some 4 MiB, 12 at most."""

MAX_OPERATIONS: Final = 2048
"""Requests about exchanges, queues and consumers of one AMQP 0-9-1 connection that are compared with others.
Of one that makes more (a queue for every question) nothing is concluded from there being no others."""

MAX_CORRELATED_OPERATIONS: Final = 65_536
"""Such requests of one capture set: some 60 MiB."""

MAX_OPERATION_ARGUMENTS: Final = 512
"""Octets of their arguments that are kept to be compared. Real ones have some dozen."""

MAX_GETS: Final = 64
"""Gets among them that were not refused: who polls does nothing else."""

MAX_AWAITED_RETURNS: Final = 64
"""Publishes of one channel that ask to be returned and may be, kept to know where the returned one was sent.
Of a channel with more no return is compared with anything."""

MAX_ENTITY_OPERATIONS: Final = 64
"""Operations on one exchange or queue that are looked through for what was known of it."""

MAX_RETURNED_OPERATIONS: Final = 1024
"""Operations on one queue. Of one with more nothing is concluded from a message that was returned: all of
them are looked through for each such message."""

MIN_DISTINCT_BODY: Final = 16
"""Octets of a body that a message without a message-id is found again by. Shorter ones come again."""

MAX_REDELIVERIES: Final = 20
"""How often a message may come again before that is worth a word. The specification suggests five; RabbitMQ's
quorum queues give up after twenty."""

ADDRESS_TRANSLATION: Final = 10_000_000
"""Nanoseconds between a packet and its copy with another client address, where a capture shows both sides of
an address translation. A kernel takes microseconds."""

EXCLUSIVE_PATIENCE: Final = 10_000_000_000
"""Nanoseconds after the end of its connection in which an exclusive queue has to be gone. Brokers do it at
once, or with the next round of some cleaner."""

# report

MAX_NAMED_DELIVERIES: Final = 65_536
"""Deliveries (and links) of one connection whose link's name is remembered to show it beside a
disposition. An unsettled delivery older than that many is shown without."""

MAX_SETTLED_DELIVERIES: Final = 4_096
"""Settled deliveries of one connection that are remembered like that, twice as many at most: a disposition
that names an older one repeats what was said long ago."""

MAX_SUMMARY_LINKS: Final = 4096
"""Links of one connection that a summary lists; the rest are counted. Nobody reads more, and a peer that
attaches for ever would take all memory."""

MAX_SUMMARY_ADDRESSES: Final = 4
"""Addresses of each kind that a summary remembers of a connection of AMQP 0-9-1: it names three."""

MAX_SUMMARY_ROWS: Final = 10_000
"""Lines of a summary: as many connections that went wrong, and as many in order. Others are counted."""

MAX_SUMMARY_DETAILS: Final = 20
"""Connections of which a summary shows more than a line, where there are many."""

MAX_SUMMARY_ERRORS: Final = 256
"""Different errors of one connection that a summary lists; the rest are counted, for the same reasons."""

MAX_DIAGNOSED: Final = 64
"""Diagnoses of one connection in a summary, of each kind."""

MAX_UNATTESTED: Final = 240_000_000_000
"""Nanoseconds for which neither peer has to say anything, so that a diagnosis believes the capture's clock:
the longest idle limit of a service that is known, of Azure. A clock that is set forward, or a machine that
sleeps, is usually off by more."""

MAX_LATEST_METHODS: Final = 64
"""Methods of a peer on a channel among which the one is looked for that a close names."""

BACKLOG_OCTETS: Final = 4 * 1024 * 1024
"""Octets of text that wait in memory for the end of a capture, to be written in the order of its connections:
those of some 5,000. More waits in a temporary file."""

MAX_SHOWN_FINDINGS: Final = 10_000
"""Findings of a capture that a report for people shows, with the frames around them: some 100 MiB, 250 if all
of these frames are long. The others are counted; forms for programs have all."""

MAX_CASE_FINDINGS: Final = 1000
"""Findings of one rule by one peer of a connection that a case of a JUnit report has in words; the rest is
counted. A server shows a case on one page, and keeps it for as many runs as it keeps."""

# why

MAX_FORMER_LINKS: Final = 1000
"""Links of one connection that are kept after a peer has detached them, to say what a frame that still names
one of them was about."""

MAX_REMEMBERED_PLACES: Final = 10_000
"""Deliveries, links or names of which `why` remembers where they were said: of each kind the newest."""

MAX_REMEMBERED_FRAMES: Final = 100_000
"""Frames of a peer of which `why` remembers where they stand, to tell which of them the other had read."""

MAX_ENDINGS: Final = 1000
"""Ends of sessions, links and channels of a connection that `why --end` tells: the first. Who asks has one in
mind, and a connection with more of them is identified by its first errors."""

MAX_ENDED_CONNECTIONS: Final = 10_000
"""Connections of a capture whose ends `why --end` tells, the first: some 80 MiB. Of the others the number is
reported, and `--connection` tells of any one."""

MAX_QUESTIONS: Final = 100
"""Frames of one packet that `why` explains. A packet of a TCP without offload holds fewer than 200."""

# recording tests

TEST_RING: Final = 32 * 1024 * 1024
"""Octets of the kernel's buffer for the recording of a test: there may be one for each of a dozen workers,
and the thread that empties it may have to wait for a test that keeps the interpreter busy."""

MAX_QUEUE_WAIT: Final = 5.0
"""Seconds at the end of a recording for what is under way within the kernel, which takes microseconds unless
the machine is very busy."""

MAX_DRAINING: Final = 30.0
"""Seconds at the end of a recording to write what waits in the buffer: a second for all of it, uncompiled."""

MAX_TEST_FINDINGS: Final = 1000
"""Findings of a capture that a test is given one by one; beyond that they are counted only."""

# policy

MAX_CONFIGURATION: Final = 1024 * 1024
"""Octets of a configuration file. One with a thousand entries has a fifth of it."""

# comparing

MAX_COMPARED_FORMS: Final = 50_000
"""Different things said in two captures that `diff` tells apart, some 100 MB. Runs of one scenario have some
hundred, thousands where every message has another content."""

MAX_COMPARED_ENTRIES: Final = 200
"""Values of one frame, or message, that are compared: maps of properties have some dozen."""

MAX_COMPARED_TEXT: Final = 200
"""Characters of such a value that are kept as they are; of the rest a digest."""

MAX_COMPARED_BODY: Final = 1024 * 1024
"""Octets of a message's body whose text is compared; of what is behind only the size."""

MAX_COMPARED_SAYINGS: Final = 16_000_000
"""Frames, deliveries and outcomes of a capture that are kept to be compared, of 8 octets each: as many as a
capture of some GB has."""

COMPARED_STORY: Final = 500
COMPARED_PART: Final = 200
"""What a connection, and a session, link, channel or consumer, counts for among them."""

MAX_COMPARED_CONNECTIONS: Final = 10_000
"""Connections of a capture that are compared, the first."""

MAX_COMPARED_PARTS: Final = 10_000
"""Sessions, links, channels or consumers of one connection that are compared, of each kind: the first."""

MAX_GENERATED_NAMES: Final = 10_000
"""Names made by brokers that are known again where they are used, in one capture."""

MAX_COMPARED_UNSETTLED: Final = 100_000
"""Deliveries of a session or channel without an outcome that wait for one. Above all prefetches in use."""

MAX_ALIGNED: Final = 2_000
"""Frames of one sequence between the first and the last difference that are set against each other one by
one, which takes time with their square. Of more the first difference is reported, and how many there may
be."""

MAX_DIFFERENCES: Final = 1_000
"""Differences of a pair of connections that are kept. Who reads them has understood after ten."""

MAX_BASELINE: Final = 100_000
"""Findings of a baseline that differ: a hostile peer can make up names for ever. Real ones have dozens."""

MAX_BASELINE_OCTETS: Final = 128 * 1024 * 1024
"""Octets of a baseline's file: one with as many findings as there may be has half of it."""

INTRODUCTION_FRAMES: Final = 32
"""Frames of a connection, of both peers, in which they introduce themselves. With SASL an open is among the
first ten; a challenge of many rounds, and what is sent without waiting for the other open, needs more."""

MAX_PEER_NAME: Final = 256
"""Characters that are kept of a name by which a peer introduces itself, and of its product. Container-ids are
often random names of some 40 characters."""

MAX_LADDER_FRAMES: Final = 2_000
"""Frames that `read --ladder` draws: more than anybody looks at, and they are kept until the end."""

MAX_DRAWN_ROWS: Final = 1_500
"""Frames of a connection that `draw` draws as arrows. The others are folded and counted: nobody looks at
more, and a browser shows so many at once."""

MAX_DRAWN_SESSIONS: Final = 32
"""Sessions of a connection of which `draw` says for each row what was read. Of others it says nothing."""

MAX_DRAWN_FINDINGS: Final = 500
"""Findings of a connection that `draw` shows in their places. The others are counted."""

MAX_PAGE_OCTETS: Final = 6_000_000
"""Octets of data in a page that `draw` writes: a browser reads so many in a fraction of a second."""

MAX_CHARTS: Final = 40
"""Charts that a page draws of each connection: three of each link."""

MAX_CHART_POINTS: Final = 800
"""Points of such a chart: about one for each pixel."""

MAX_STATE_PATHS: Final = 60
"""Paths through state diagrams that a page draws of each connection: nobody looks at more links."""

MAX_PATH_STEPS: Final = 60
"""Steps of such a path. Real ones have ten; who opens and closes a channel all the time has more."""

MAX_MAP_LINES: Final = 60
"""Links, consumers and publishers that a page maps of each connection. The others are counted."""

MAX_DRAWN_CONNECTIONS: Final = 40
"""Connections of a page: the worst ones. The others are counted."""

MAX_ANNOTATED: Final = 100_000
"""Findings that `check --annotate` and `cut` write as comments: some 30 MB of memory. Nobody reads more."""

MAX_CUT_PACKETS: Final = 20_000_000
"""Packets of a capture that `cut` takes a part of: 16 octets of memory for each, some 320 MB."""

MAX_MASKED_MESSAGE: Final = 16 * 1024 * 1024
"""Octets of the messages under way of one direction that `cut --anonymise` keeps until they are complete.
What follows of such a message is masked as a body."""

MAX_ANONYMISED: Final = 16 * 1024 * 1024 * 1024
"""Octets of streams that `cut --anonymise` writes to a temporary file."""

MAX_LINKED_MESSAGES: Final = 1_000_000
"""Messages of a capture whose settlement `read --linked` remembers, some 300 MB; the others have none."""

MAX_HELD_FRAMES: Final = 1_500
"""Frames of `read` that wait for what is found in them, and as many before them: about those of a block."""

MAX_PLACED_FRAMES: Final = 30_000
"""Places of frames that `read` has written, two a frame (5 MB). A late finding may be about one of them."""

# several processes

MIN_SHARED_OCTETS: Final = 8 * 1024 * 1024
"""Octets of a capture that are left when its connections are shared out. Fewer are read as fast by one."""

MAX_JOBS: Final = 64
"""Processes that analyse one capture. Each follows the TCP of all connections, so more gain nothing."""

MIN_AHEAD_OCTETS: Final = 256 * 1024
"""Octets of a capture that a process reads beside other captures. A smaller one is read sooner than that."""

MAX_AHEAD_PER_JOB: Final = 4
"""Captures for each process that are read before their turn comes: their results wait in temporary files."""

SHARE_PROBE: Final = 1024 * 1024
"""Octets of a capture between two looks whether its connections can be shared out."""

WORKER_WAIT: Final = 0.1
"""Seconds after which a process that waits for its workers shows how far they are."""
