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
    "attached_without_what_was_left",
    "capability_that_is_none",
    "close_before_open",
    "closed_without_a_reason",
    "condition_of_another_frame",
    "condition_that_nobody_defines",
    "coordinator_as_source",
    "data_left_out",
    "declare_as_sequence",
    "declare_rejected_without_error",
    "default_outcome_that_is_none",
    "deliveries_interleave",
    "delivery_id_out_of_sequence",
    "discharge_as_data",
    "discharge_of_no_transaction",
    "discharge_released",
    "discharged_with_credit_left",
    "dynamic_source_requested_by_address",
    "dynamic_source_that_tells_nothing",
    "dynamic_source_without_address",
    "dynamic_target_requested_by_address",
    "dynamic_target_that_tells_nothing",
    "dynamic_target_without_address",
    "filter_that_is_no_described_value",
    "filter_with_key_that_is_no_symbol",
    "frame_larger_than_512_octets",
    "frame_larger_than_agreed",
    "given_up_at_what_was_announced",
    "left_without_resuming",
    "listed_again_though_only_here",
    "m_payload_whole",
    "m_sect_known",
    "m_sect_once",
    "m_sect_order",
    "m_sect_type",
    "max_frame_size_below_the_floor",
    "messages_asked_for_in_no_transaction",
    "octets_behind_a_flow",
    "open_larger_than_512_octets",
    "outcome_not_offered",
    "outcomes_by_their_bare_names",
    "oversized_frame_is_taken",
    "p_attach_mand",
    "p_begin_mand",
    "p_detach_mand",
    "p_disp_mand",
    "p_error_mand",
    "p_open_mand",
    "p_transfer_mand",
    "pipelined_frame_larger_than_512_octets",
    "received_beyond_what_was_sent",
    "receiver_changes_its_outcome",
    "resource_names_a_transaction_of_its_own_accord",
    "resumed_without_resume",
    "sa_mech_nonempty",
    "sasl_frame_with_another_body",
    "sasl_value_in_an_amqp_frame",
    "sender_without_initial_delivery_count",
    "session_flow_with_available",
    "session_flow_with_delivery_count",
    "session_flow_with_drain",
    "session_flow_with_link_credit",
    "t_comp_extra",
    "t_comp_list",
    "t_comp_mult_mand",
    "t_comp_requires",
    "t_comp_type",
    "t_desc_ctor",
    "t_desc_reserved",
    "t_enum_expiry",
    "t_enum_saslcode",
    "t_fields_key",
    "t_map_dupkey",
    "t_size_overrun",
    "two_transactions_on_a_session",
    "unknown_distribution_mode",
    "unsettled_map_with_a_string_as_key",
    "work_in_no_transaction",
    "work_on_another_session",
)
"""Those that are written anew in this folder."""

retell("amqp10", __name__, RULES, OWN, SIGNS)
