"""One fault in a conversation in the April-2011 draft: those of the final that are faults there, too."""

from __future__ import annotations

from support import faults
from support.legal import Peer, Said
from support.legal_draft2011 import Talk2011
from support.planting import Planted, Registry

from amqpscope.rules.registry import checked

__all__ = ["FAULTS", "mischief", "plant"]

NAMESPACE = "amqp10-draft2011"

_REGISTRY = Registry()

TOO_SOON = (
    "begin_before_open",
    "challenge_before_init",
    "close_before_open",
    "client_sends_outcome",
    "init_before_mechanisms",
    "large_open_before_the_other",
    "open_in_the_sasl_layer",
    "open_on_channel_1",
    "open_without_header",
    "outcome_before_mechanisms",
    "success_before_init",
)
"""Faults after which too little is said to show the dialect while the capture is read."""

OTHERWISE = (
    *("deliveries_interleave", "delivery_id_backwards", "header_after_properties", "two_headers"),
    "unknown_constructor_in_message",
)
"""Faults by what only the final has: delivery-ids, and sections in the payload."""

NEVER_CERTAIN = (
    *("attach_without_name", "begin_without_window", "detach_without_handle", "disposition_without_first"),
    *("error_without_condition", "open_without_container_id"),
    *("received_beyond_what_was_sent", "resumed_without_data"),
)
"""Faults that are only possible in the draft, of which less is known."""

IN_ITS_FORM = (
    *("dynamic_source_requested_by_address", "dynamic_source_without_address"),
    *("dynamic_target_requested_by_address", "dynamic_target_without_address"),
    *("source_that_breaks_m_filter_key", "source_that_breaks_m_filter_value"),
    *("source_that_breaks_m_outcome_valid", "source_that_breaks_m_outcomes_symbol"),
    "source_that_breaks_t_enum_expiry",
)
"""Faults in a source or target that is encoded as the final has it."""

_REGISTRY.faults.update(
    {
        name: one
        for name, one in faults.FAULTS.items()
        if f"{NAMESPACE}/{one[0]}" in checked()
        and name not in (*OTHERWISE, *TOO_SOON, *NEVER_CERTAIN, *IN_ITS_FORM)
        and not name.startswith("message_that")
        and not one[0].startswith("TX-")  # its peers do not transact
    }
)


@_REGISTRY.breaks("D-TAG-UNIQUE")
def tag_in_use(peer: Peer) -> Said | None:
    """Of a delivery of one transfer. Others are not followed: a disposition may name all transfers or one."""
    for session, link in faults.ready(peer):
        for each in session.sent.values():
            transfers = [
                said
                for said in peer.talk.said[peer.side]
                if said.name == "transfer" and said.fields.get("delivery_tag") == each.tag
            ]
            if each.link is link and not each.remote_settled and len(transfers) == 1:
                return faults.delivery(peer, session, link, delivery_tag=each.tag)
    return None


FAULTS = _REGISTRY.faults
mischief = _REGISTRY.mischief


def plant(name: str, seed: str) -> Planted | None:
    """A conversation with this fault in it, or None if there was no occasion."""
    return faults.plant(name, seed, Talk2011, FAULTS)
