"""The declarations: every object, and the objects that several have in common."""

from typing import Any, Final

from amqpscope.schemas.lake import LAKE_REPORT, LAKE_SUMMARY
from amqpscope.schemas.shapes import (
    ANY,
    CERTAINTY,
    FLAG,
    INDEX,
    NUMBER,
    PEER,
    SEVERITY,
    TEXT,
    TIME,
    Schema,
    any_of,
    listed,
    mapped,
    named,
    nullable,
    per_peer,
    record,
    said,
)  # fmt: skip

__all__ = ["COMMON", "SCHEMAS", "document"]

PACKET: Final = record({"capture": TEXT, "packet": INDEX})
REFERENCES: Final = listed(record({"text": TEXT, "address": TEXT}))
SEEN: Final = record({"packet": INDEX, "name": TEXT})

_FRAME: Final[dict[str, Schema]] = {
    "capture": said(TEXT, "the file"),
    "packet": said(INDEX, "the packet of the frame's first octet"),
    "last_packet?": said(INDEX, "the packet of the frame's last octet, if it is another packet"),
    "time": said(TIME, "the time of the frame's first octet, in ISO 8601, UTC, with nanoseconds"),
    "connection": said(TEXT, "client>server#n"),
    "peer": said(PEER, "who sent it"),
    "protocol": said(nullable(TEXT), "amqp10, amqp10-draft2011, amqp091"),
    "kind": said(
        TEXT, "the kind: header, amqp, sasl, method, content-header, body, heartbeat, unknown, skipped"
    ),
    "name": said(TEXT, "transfer, sasl-init, basic.publish, undecodable, ..."),
    "channel": said(nullable(INDEX), "null where there is none"),
    "size": said(nullable(INDEX), "octets on the wire; null in a log that has no octets"),
    "fields": said(mapped(ANY), "the fields of the frame, by their names in the specification"),
    "problems": listed(
        record(
            {
                "code": said(TEXT, "the id of the broken rule in capitals, or another code in small letters"),
                "offset": said(INDEX, "in the frame"),
                "path": said(TEXT, "where the value is, such as attach.source.filter[0]"),
                "reason": TEXT,
            }
        )
    ),
    "payload?": said(INDEX, "the number of message octets in this frame"),
    "message?": said(nullable(mapped(ANY)), "the message that this frame completes"),
    "link?": said(TEXT, "the name of the frame's link, or of its consumer"),
    "address?": said(nullable(TEXT), "the address of the frame's link, or its exchange and queue"),
    "answers?": said(
        record({"packets": listed(INDEX), "count": INDEX, "seconds": NUMBER}),
        "with --linked: the messages that this frame settles or confirms: the packets of their first frames, "
        "the first 16 of them, and the time since the oldest",
    ),
    "settled_by?": said(
        record({"packet": INDEX, "seconds": NUMBER}),
        "with --linked: the packet that first settles or confirms the message that this frame begins",
    ),
}

_FINDING: Final[dict[str, Schema]] = {
    "rule": said(TEXT, "the rule's id with its namespace, such as amqp10/L-CREDIT"),
    "severity": SEVERITY,
    "certainty": CERTAINTY,
    "requirement": said(nullable(TEXT), "the level in the specification"),
    "message": said(TEXT, "one sentence with the values"),
    "spec": said(nullable(TEXT), "document and section"),
    "references": said(nullable(REFERENCES), "the public addresses of these sections"),
    "edition": said(nullable(TEXT), "the edition of the specification: final, csd01, csprd02 or draft2011"),
    "profile": said(nullable(TEXT), "the profile that makes the finding a note"),
    "capture": said(nullable(TEXT), "the file"),
    "packet": said(nullable(INDEX), "the packet of the offending frame's first octet"),
    "time": said(nullable(TIME), "its time"),
    "packets": said(listed(PACKET), "all packets that matter to the finding, the offending packet first"),
    "connection": said(nullable(TEXT), "client>server#n"),
    "protocol": nullable(TEXT),
    "peer": said(nullable(PEER), "who is at fault"),
    "channel": nullable(INDEX),
    "session": said(
        nullable(INDEX), "the number of the session, in the order of the begins of the connection"
    ),
    "link": nullable(record({"name": TEXT, "sender": PEER})),
    "delivery_id": nullable(INDEX),
    "expected_condition": said(nullable(TEXT), "the error with which a correct peer answers the fault"),
    "reaction": said(
        nullable(
            record(
                {
                    "frame": said(TEXT, "or FIN, RST"),
                    "condition": nullable(TEXT),
                    "after_seconds": NUMBER,
                    "packet": INDEX,
                }
            )
        ),
        "the error with which the other peer answered the fault",
    ),
    "evidence": said(nullable(mapped(ANY)), "the state before the frame, as named values"),
    "fingerprint": said(TEXT, "the fingerprint, which is equal for the same finding in another run"),
    "overridden?": said(
        nullable(SEVERITY), "the rule's own severity, if the configuration sets another severity"
    ),
    "suppressed?": said(
        nullable(record({"by": any_of("allow", "baseline"), "reason": TEXT})),
        "why the finding does not count",
    ),
    "amended?": said(FLAG, "true if `sniff` writes the finding a second time, now with the reaction"),
}

_NOTE: Final[dict[str, Schema]] = {
    "code": TEXT,
    "severity?": {"const": "note"},
    "packet": nullable(INDEX),
    "connection": nullable(TEXT),
    "detail": TEXT,
}

_STALLED: Final = nullable(record({"window_seconds": NUMBER, "resent_seconds": NUMBER}))

_CERTIFICATE: Final = nullable(
    record(
        {
            "subject": TEXT,
            "issuer": TEXT,
            "names": listed(TEXT),
            "not_before": nullable(TEXT),
            "not_after": nullable(TEXT),
        }
    )
)
_TLS: Final = record(
    {
        "version": nullable(TEXT),
        "cipher_suite": nullable(TEXT),
        "server_name": nullable(TEXT),
        "alpn": nullable(TEXT),
        "alpn_offered": listed(TEXT),
        "client_random": said(nullable(TEXT), "the name of the connection in a key log, in hex"),
        "decrypted": FLAG,
        "not_decrypted_because": nullable(TEXT),
        "server_certificate": _CERTIFICATE,
        "client_certificate": _CERTIFICATE,
        "alerts": listed(
            record({"peer": PEER, "level": any_of("fatal", "warning"), "description": TEXT, "packet": INDEX})
        ),
    }
)
_WEBSOCKET: Final = record(
    {
        "status": said(nullable(INDEX), "of the answer of HTTP; null if the answer was not captured"),
        "reason": nullable(TEXT),
        "subprotocols_offered": listed(TEXT),
        "subprotocol": nullable(TEXT),
        "compressed": FLAG,
        "not_read_because": nullable(TEXT),
        "closes": listed(record({"peer": PEER, "code": nullable(INDEX), "packet": INDEX})),
    }
)

_CONNECTION: Final[dict[str, Schema]] = {
    "capture?": TEXT,
    "connection": said(TEXT, "client>server#n"),
    "tcp_stream": said(INDEX, "Wireshark's number"),
    "client": said(TEXT, "address and port"),
    "server": said(TEXT, "address and port"),
    "protocol": nullable(TEXT),
    "encrypted": FLAG,
    "tls": said(nullable(_TLS), "null if there was none"),
    "websocket": said(
        nullable(_WEBSOCKET), "the handshake and the ends of WebSocket; null without WebSocket"
    ),
    "start": nullable(TIME),
    "end": nullable(TIME),
    "octets": said(per_peer(nullable(INDEX)), "sent by each; null in a log that has no octets"),
    "missing": said(per_peer(nullable(INDEX)), "of these not captured"),
    "retransmitted": per_peer(INDEX),
    "captured_twice": per_peer(INDEX),
    "could_not_write": said(
        nullable(record({"client?": _STALLED, "server?": _STALLED})),
        "how long TCP kept each peer from writing",
    ),
    "midstream": said(FLAG, "true if the capture begins in the middle of the connection"),
    "tcp_ended": per_peer(nullable(any_of("fin", "rst"))),
}

_DIAGNOSIS: Final = record(
    {
        "code": said(TEXT, "`diag/...`"),
        "subject": said(nullable(TEXT), "what it is about, such as the name of a link"),
        "whose_move": said(nullable(PEER), "who has to act to end it; null if it is neither"),
        "packet": said(nullable(INDEX), "since which packet"),
        "ended_packet": said(nullable(INDEX), "the packet that ended it, null if it lasts"),
        "seconds": said(nullable(NUMBER), "how long; null if time does not matter"),
        "connection": said(TEXT, "client>server#n"),
        "figures": said(mapped(ANY), "what proves it"),
        "message": said(TEXT, "the sentence"),
        "packets": said(listed(INDEX), "the packets to look at"),
    }
)

_WAIT: Final = record(
    {
        "seconds": NUMBER,
        "longest": NUMBER,
        "longest_packet": said(nullable(INDEX), "since which packet the longest wait lasted"),
    }
)
_LATENCY: Final = said(
    record(
        {
            "count": INDEX,
            "p50": NUMBER,
            "p95": NUMBER,
            "p99": NUMBER,
            "longest": NUMBER,
            "longest_packets": listed(INDEX),
        }
    ),
    "seconds; percentiles of more than 256 are too large by an eighth at most",
)
_DELIVERIES: Final = record(
    {
        "messages": INDEX,
        "octets": INDEX,
        "messages_per_second": said(nullable(NUMBER), "from the first message to the last one"),
        "octets_per_second": nullable(NUMBER),
        "median_octets": nullable(INDEX),
        "largest_octets": nullable(INDEX),
        "largest_packet": nullable(INDEX),
        "redelivered": INDEX,
        "outcomes": mapped(INDEX),
        "settlement_seconds": said(nullable(_LATENCY), "null: nothing was settled, or the clocks differ"),
        "unsettled": said(INDEX, "messages that were never settled"),
        "unsettled_longest": said(nullable(NUMBER), "seconds"),
        "unsettled_packet": nullable(INDEX),
        "not_followed": said(INDEX, "messages whose outcome is not known here: too many were unsettled"),
    }
)
_CHANNEL: Final = record(
    {
        "channel": INDEX,
        "opened_packet": nullable(INDEX),
        "published": _DELIVERIES,
        "returned": INDEX,
        "fetched": said(nullable(_DELIVERIES), "by basic.get"),
        "empty_gets": INDEX,
        "stopped_by": said(per_peer(_WAIT), "channel.flow"),
        "consumers": listed(
            record(
                {
                    "consumer": TEXT,
                    "queue": nullable(TEXT),
                    "prefetch": nullable(INDEX),
                    "prefetch_full": _WAIT,
                    "deliveries": _DELIVERIES,
                }
            )
        ),
    }
)

_SUMMARY: Final[dict[str, Schema]] = {
    **_CONNECTION,
    "closed_in_packet?": per_peer(nullable(INDEX)),
    "frames?": per_peer(INDEX),
    "containers?": per_peer(nullable(TEXT)),
    "products?": per_peer(nullable(TEXT)),
    "sasl?": record({"mechanism": nullable(TEXT), "outcome": nullable(TEXT)}),
    "sessions?": said(INDEX, "sessions, or channels"),
    "messages?": per_peer(INDEX),
    "message_octets?": per_peer(INDEX),
    "frames_with_problems?": INDEX,
    "errors?": listed(
        record(
            {
                "packet": INDEX,
                "peer": PEER,
                "in": said(TEXT, "the frame"),
                "condition": TEXT,
                "description": nullable(TEXT),
                "link": nullable(TEXT),
                "count": INDEX,
            }
        )
    ),
    "errors_not_listed?": INDEX,
    "links?": listed(
        record(
            {
                "name": TEXT,
                "sender": PEER,
                "source": nullable(TEXT),
                "target": nullable(TEXT),
                "transfers": INDEX,
                "messages": INDEX,
                "aborted": INDEX,
                "octets": INDEX,
                "ended": nullable(TEXT),
                "error": nullable(TEXT),
                "credit": nullable(
                    record(
                        {
                            "granted": said(INDEX, "deliveries that the receiver allowed"),
                            "used": said(INDEX, "deliveries that were sent"),
                            "largest": said(INDEX, "the largest link-credit"),
                            "waited": said(_WAIT, "how long the sender had none"),
                            "peak_unsettled": INDEX,
                        }
                    )
                ),
                "deliveries": _DELIVERIES,
            }
        )
    ),
    "links_not_listed?": INDEX,
    "round_trip?": said(per_peer(nullable(NUMBER)), "seconds of TCP, from the place of the capture and back"),
    "silence?": per_peer(
        record({"longest": NUMBER, "after_packet": nullable(INDEX), "limit": nullable(NUMBER)})
    ),
    "windows?": listed(
        record(
            {
                "channels": per_peer(nullable(INDEX)),
                "window_closed": said(per_peer(_WAIT), "how long a peer could send no transfer"),
            }
        )
    ),
    "channels?": listed(_CHANNEL),
    "requests?": said(mapped(_LATENCY), "how long answers took, by what was asked for"),
    "blocked?": said(nullable(_WAIT), "how long the server had blocked the connection"),
}

_BASELINE: Final[dict[str, Schema]] = {
    "rule": TEXT,
    "peer": TEXT,
    "message": said(TEXT, "without its numbers"),
    "fingerprint": TEXT,
    "captures": said(mapped(INDEX), "by capture how many"),
}

_KNOWLEDGE: Final = record(
    {
        "must_have_read": nullable(SEEN),
        "could_have_read": nullable(SEEN),
        "perhaps_read": listed(SEEN),
        "perhaps_read_count": INDEX,
        "on_its_way": nullable(SEEN),
        "on_its_way_count": INDEX,
    }
)
_EXPLAINED: Final = record(
    {
        "frame": nullable(named("frame")),
        "knew": record({"client?": _KNOWLEDGE, "server?": _KNOWLEDGE}, "what each peer had read"),
        "grounds": listed(
            record(
                {
                    "effect": said(TEXT, "grants, limits, forbids, lacks, sets up, belongs to"),
                    "what": TEXT,
                    "packet": nullable(INDEX),
                    "known": said(
                        nullable(TEXT), "whether the sender of the explained frame had read the earlier frame"
                    ),
                    "frame": nullable(named("frame")),
                }
            )
        ),
        "findings": listed(named("finding")),
        "followed": listed(record({"what": TEXT, "packet": INDEX, "frame": nullable(named("frame"))})),
    }
)
_END: Final = record(
    {
        "state": TEXT,
        "whole": FLAG,
        "on_its_way": INDEX,
        "max_frame_size": nullable(INDEX),
        "channel_max": nullable(INDEX),
        "stall": nullable(
            record({"cause": any_of("window", "resent"), "packet": INDEX, "seconds": nullable(NUMBER)})
        ),
        "idle_seconds": nullable(NUMBER),
    }
)
_HALF: Final = nullable(
    record(
        {
            "channel": nullable(INDEX),
            "state": TEXT,
            "next_outgoing_id": nullable(INDEX),
            "next_incoming_id": nullable(INDEX),
            "may_send_transfers": nullable(INDEX),
            "outgoing_window": nullable(INDEX),
            "unsettled": INDEX,
        }
    )
)
_STATE: Final = record(
    {
        "client": _END,
        "server": _END,
        "blocked": FLAG,
        "sessions": listed(
            record(
                {
                    "session": INDEX,
                    "client": _HALF,
                    "server": _HALF,
                    "links": listed(
                        record(
                            {
                                "name": TEXT,
                                "sender": PEER,
                                "sender_state": nullable(TEXT),
                                "receiver_state": nullable(TEXT),
                                "credit": nullable(INDEX),
                                "delivery_count": nullable(INDEX),
                                "drain": FLAG,
                                "unsettled": INDEX,
                                "unfinished": FLAG,
                            }
                        )
                    ),
                    "more_links": INDEX,
                }
            )
        ),
        "channels": listed(
            record(
                {
                    "channel": INDEX,
                    "state": TEXT,
                    "prefetch": nullable(INDEX),
                    "last_delivery_tag": INDEX,
                    "unacknowledged": INDEX,
                    "confirming": FLAG,
                    "published": INDEX,
                    "unconfirmed": INDEX,
                    "transacted": FLAG,
                    "client_stopped": FLAG,
                    "server_stopped": FLAG,
                    "awaits_answer_to": nullable(TEXT),
                    "consumers": listed(
                        record(
                            {
                                "tag": TEXT,
                                "queue": TEXT,
                                "no_ack": FLAG,
                                "prefetch": nullable(INDEX),
                                "unacknowledged": nullable(INDEX),
                            }
                        )
                    ),
                    "more_consumers": INDEX,
                }
            )
        ),
    },
    "the state of the two peers before the packet",
)

_PACKET_EXPLAINED: Final[dict[str, Schema]] = {
    "capture": TEXT,
    "packet": INDEX,
    "origin": nullable(PACKET),
    "time": TIME,
    "from": TEXT,
    "to": TEXT,
    "octets": INDEX,
    "flags": said(listed(TEXT), "of TCP"),
    "connection": nullable(TEXT),
    "protocol": nullable(TEXT),
    "peer": nullable(PEER),
    "before": nullable(_STATE),
    "frames": listed(_EXPLAINED),
    "more_frames": INDEX,
    "end_of_stream": nullable(_EXPLAINED),
    "findings": said(listed(named("finding")), "findings at the packet that belong to none of its frames"),
    "named_by": said(listed(named("finding")), "findings in other packets that name this packet"),
    "diagnoses": said(listed(_DIAGNOSIS), "diagnoses that name the packet, or last while it is sent"),
    "packets": said(mapped(listed(named("frame"))), "the frames of the packets that the findings name"),
}
_ENDS_EXPLAINED: Final[dict[str, Schema]] = {
    "capture": TEXT,
    "connections": listed(
        record(
            {
                "connection": TEXT,
                "protocol": nullable(TEXT),
                "tls": nullable(_TLS),
                "endings": listed(
                    record(
                        {
                            "thing": TEXT,
                            "what": TEXT,
                            "peer": nullable(PEER),
                            "condition": nullable(TEXT),
                            "packet": nullable(INDEX),
                            "frame": nullable(named("frame")),
                            "because": listed(
                                record(
                                    {
                                        "what": TEXT,
                                        "sure": said(FLAG, "a cause; otherwise it only came before"),
                                        "packet": nullable(INDEX),
                                        "frame": nullable(named("frame")),
                                        "finding": nullable(named("finding")),
                                        "diagnosis": nullable(_DIAGNOSIS),
                                    }
                                )
                            ),
                        }
                    )
                ),
                "diagnoses": said(listed(_DIAGNOSIS), "diagnoses that explain no end"),
                "more": INDEX,
            }
        )
    ),
    "diagnoses": said(listed(_DIAGNOSIS), "diagnoses of connections that are not among these"),
    "connections_not_told?": INDEX,
}

_RUN: Final = record(
    {
        "capture": TEXT,
        "connections": INDEX,
        "frames": INDEX,
        "encrypted": INDEX,
        "connections_not_compared": INDEX,
        "findings_not_listed": INDEX,
    }
)
_SIDE: Final = nullable(
    record(
        {
            "connection": TEXT,
            "tcp_stream": INDEX,
            "frames": INDEX,
            "midstream": FLAG,
            "compared_up_to_packet": nullable(INDEX),
            "why_not_further": nullable(TEXT),
        }
    )
)
_SAYING: Final = nullable(record({"said": TEXT, "packet": INDEX, "frame": nullable(named("frame"))}))
_DIFFERENCE: Final[dict[str, Schema]] = {
    "subject": TEXT,
    "where": listed(record({"what": TEXT, "label": TEXT})),
    "peer": PEER,
    "negotiated": FLAG,
    "place": INDEX,
    "fields": listed(record({"field": TEXT, "a": nullable(TEXT), "b": nullable(TEXT)})),
    "a": _SAYING,
    "b": _SAYING,
}

_RULE: Final[dict[str, Schema]] = {
    "rule": TEXT,
    "layer": TEXT,
    "severity": SEVERITY,
    "requirement": TEXT,
    "basis": TEXT,
    "breaker": any_of("client", "server", "sender", "receiver", "either"),
    "status": TEXT,
    "text": TEXT,
    "spec": TEXT,
    "references": REFERENCES,
    "observable": any_of("yes", "partial", "no"),
    "reason": nullable(TEXT),
    "evidence": nullable(TEXT),
    "expected_condition": nullable(TEXT),
}
_PROVED: Final = record(
    {"rule": TEXT, "layer": TEXT, "status": TEXT, "reason": nullable(TEXT), "failures": listed(TEXT)}
)
_SETTING: Final = record({"value": ANY, "from": any_of("file", "default"), "line": nullable(INDEX)})

COMMON: Final[dict[str, Schema]] = {
    "frame": record(_FRAME, "A frame, as `read --format ndjson` writes it."),
    "finding": record(_FINDING, "A finding, as `check --format ndjson` writes it."),
    "note": record(_NOTE, "A note about a capture."),
}
"""Objects of which several others consist, by their names in `$defs`."""

SCHEMAS: Final[dict[str, Schema]] = {
    "frames": record(
        {
            "frames": listed(named("frame")),
            "captures": listed(
                record({"capture": TEXT, "error": nullable(TEXT), "notes": listed(named("note"))})
            ),
        },
        "`read --format json`",
    ),
    "findings": record(
        {
            "findings": listed(named("finding")),
            "connections": listed(record(_CONNECTION)),
            "diagnoses": listed(_DIAGNOSIS),
            "captures": listed(
                record(
                    {
                        "capture": TEXT,
                        "size": said(nullable(INDEX), "null for a pipe"),
                        "status": any_of("ok", "partial", "unreadable"),
                        "reason": nullable(TEXT),
                        "protocols": said(mapped(INDEX), "TCP connections by protocol"),
                        "ignored": said(INDEX, "findings left out by the configuration"),
                        "notes": listed(named("note")),
                    }
                )
            ),
            "fixed": said(listed(record(_BASELINE)), "entries of the baseline that were not found again"),
        },
        "`check --format json`",
    ),
    "summary": record(
        {
            "capture": TEXT,
            "connections": listed(record(_SUMMARY)),
            "diagnoses": listed(_DIAGNOSIS),
            "connections_not_listed": INDEX,
            "notes": listed(named("note")),
        },
        "`summary --format json`",
    ),
    "census": record(
        {
            "capture": TEXT,
            "connections": INDEX,
            "frames": listed(record({"name": TEXT, "client": INDEX, "server": INDEX})),
            "frames_with_problems": INDEX,
            "octets": INDEX,
            "missing": INDEX,
        },
        "`read --count --format json`",
    ),
    "why": {
        "description": "`why --format json`: a packet, or with `--end` the ends of connections",
        "anyOf": [record(_PACKET_EXPLAINED), record(_ENDS_EXPLAINED)],
    },
    "diff": record(
        {
            "same": FLAG,
            "all_told_apart": FLAG,
            "a": _RUN,
            "b": _RUN,
            "connections": listed(
                record(
                    {
                        "same": FLAG,
                        "protocol": nullable(TEXT),
                        "a": _SIDE,
                        "b": _SIDE,
                        "peers": listed(
                            record({"peer": PEER, "field": TEXT, "a": nullable(TEXT), "b": nullable(TEXT)})
                        ),
                        "differences": listed(record(_DIFFERENCE)),
                        "differences_count": INDEX,
                        "differences_exact": FLAG,
                        "first": nullable(
                            record(
                                {
                                    **_DIFFERENCE,
                                    "before": record(
                                        {"a": listed(named("frame")), "b": listed(named("frame"))}
                                    ),
                                }
                            )
                        ),
                    }
                )
            ),
            "findings": listed(
                record(
                    {"fingerprint": TEXT, "a": INDEX, "b": INDEX, "counts": FLAG, "finding": named("finding")}
                )
            ),
            "diagnoses": said(
                listed(record({"a": INDEX, "b": INDEX, "diagnosis": _DIAGNOSIS})),
                "how often each run has a diagnosis; diagnoses make no difference",
            ),
        },
        "`diff --format json`",
    ),
    "baseline": record({"findings": listed(record(_BASELINE))}, "`check --write-baseline`"),
    "configuration": record(
        {
            "file": nullable(TEXT),
            "settings": mapped(_SETTING),
            "severity": listed(
                record({"rule": TEXT, "severity": SEVERITY, "rules": INDEX, "line": nullable(INDEX)})
            ),
            "allow": listed(
                record(
                    {
                        "rule": listed(TEXT),
                        "reason": TEXT,
                        "scope": mapped(listed(TEXT)),
                        "expires": nullable(TEXT),
                        "expired": FLAG,
                        "rules": INDEX,
                        "line": nullable(INDEX),
                    }
                )
            ),
        },
        "`config show --format json`",
    ),
    "rules": record({"rules": listed(record(_RULE))}, "`rules list --format json`"),
    "coverage": record(
        {
            "counts": mapped(INDEX),
            "rules": listed(_PROVED),
            "guards": listed(_PROVED),
            "xml_rules": listed(
                record({"name": TEXT, "rules": listed(TEXT), "status": TEXT, "reason": nullable(TEXT)})
            ),
        },
        "`rules coverage --format json`",
    ),
    "profiles": record(
        {
            "profiles": listed(
                record(
                    {
                        "name": TEXT,
                        "product": TEXT,
                        "marks": listed(
                            record({"field": TEXT, "pattern": TEXT, "version_below": nullable(TEXT)})
                        ),
                        "habits": listed(
                            record(
                                {
                                    "rule": TEXT,
                                    "does": TEXT,
                                    "source": TEXT,
                                    "frames": nullable(listed(TEXT)),
                                    "path": nullable(TEXT),
                                }
                            )
                        ),
                    }
                )
            )
        },
        "`rules profiles --format json`",
    ),
    "lake-summary": LAKE_SUMMARY,
    "lake-report": LAKE_REPORT,
}
"""Each object by its name in `schema`, without that field."""


def document(name: str) -> dict[str, Any]:
    """A whole schema, with the definitions that it uses."""
    constant = {"const": f"amqpscope/{name}/1"}
    body = dict(SCHEMAS[name])
    for one in body.get("anyOf", [body]):
        one["properties"] = {"schema": constant, **one["properties"]}
        one["required"] = ["schema", *(key for key in one["required"] if key != "schema")]
    used = [key for key in COMMON if f"#/$defs/{key}" in str(body)]
    made = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:amqpscope:{name}:1",
        "title": f"amqpscope/{name}/1",
        **body,
    }
    return made | ({"$defs": {key: COMMON[key] for key in used}} if used else {})
