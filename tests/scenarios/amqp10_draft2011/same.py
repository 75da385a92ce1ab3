"""The pairs of the rules that the draft has in the same words as the final, played in the draft."""

from __future__ import annotations

from scenarios.pairs import retell
from support.dialogue_draft2011 import Dialogue2011

from amqpscope.rules.registry import checked

PREFIX = f"{Dialogue2011.namespace}/"

# By its options, and by a number of the type that the draft has there, each open shows the dialect at once.
SIGNS = {"options": {}, "max_frame_size": 65536}

RULES = {rule.removeprefix(PREFIX) for rule in checked() if rule.startswith(PREFIX)}

OWN = (
    "closed_without_a_reason",
    "deliveries_interleave",
    "delivery_id_out_of_sequence",
    "frame_larger_than_512_octets",
    "frame_larger_than_agreed",
    "given_up_at_what_was_announced",
    "left_without_resuming",
    "listed_again_though_only_here",
    "m_sect_once",
    "m_sect_order",
    "max_frame_size_below_the_floor",
    "open_larger_than_512_octets",
    "oversized_frame_is_taken",
    "p_transfer_mand",
    "pipelined_frame_larger_than_512_octets",
    "resumed_without_resume",
    "sender_without_initial_delivery_count",
    "session_flow_with_available",
    "session_flow_with_delivery_count",
    "session_flow_with_drain",
    "session_flow_with_link_credit",
    "t_comp_type",
    "t_size_overrun",
)
"""Those that are written anew in this folder."""

retell("amqp10", __name__, RULES, OWN, SIGNS)
