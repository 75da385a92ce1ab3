"""Sizes of frames, where the draft allows 4096 octets (section 3.8.22).

The functions are those of `rules.amqp10.connection` and `rules.amqp10.sasl`.
"""

from typing import Final

from amqpscope.rules.declaration import Rules

RULES: Final = Rules("amqp10_draft2011/sizes")


C_OPEN_SIZE: Final = RULES.rule(
    "C-OPEN-SIZE", "MUST", "definition", answer="amqp:connection:framing-error", octets=True
)
"""A peer sends an open of more than 4096 octets before it has received the other peer's open.

Demands: Before the other peer's open has arrived, an open must not exceed 4096 octets.
Source: AMQP 1.0, draft of 5 April 2011 (revision 1239M), sections 3.4.1 and 3.8.22
Evidence: the size of the open, and the order of the two open frames
Why it matters: Before the peers have agreed on limits, a receiver need not accept frames larger than 4096
octets. The receiver may close the connection.
Silent when: the other peer's open may already have arrived, or when octets of either peer were not captured.
How to mend it: Keep the open within 4096 octets, for example by a shorter container-id and fewer properties
or capabilities. Send a larger open only after the other peer's open has arrived.
"""


C_PIPE_SIZE: Final = RULES.rule(
    "C-PIPE-SIZE", "MUST", "definition", answer="amqp:connection:framing-error", octets=True
)
"""A peer sends a frame of more than 4096 octets before it has received the other peer's open.

Demands: Before the other peer's open has arrived, a frame must not exceed 4096 octets.
Source: AMQP 1.0, draft of 5 April 2011 (revision 1239M), sections 3.4.1, 3.4.2 and 3.8.22
Evidence: the sizes of the frames that were captured before the other peer's open
Why it matters: Before the peers have agreed on limits, a receiver need not accept frames larger than 4096
octets. The receiver may close the connection.
Silent when: the other peer's open may already have arrived, or when octets of either peer were not captured.
How to mend it: Wait for the other peer's open before sending frames larger than 4096 octets, or keep all
pipelined frames within 4096 octets.
"""


C_MAXFRAME_FLOOR: Final = RULES.rule("C-MAXFRAME-FLOOR", "MUST", "keyword", usual_answer="amqp:invalid-field")
"""A peer announces in its open a max-frame-size below 4096.

Demands: Every peer accepts frames of 4096 octets, so an open must not announce a smaller max-frame-size.
Source: AMQP 1.0, draft of 5 April 2011 (revision 1239M), sections 3.7.1 and 3.8.22
Evidence: a max-frame-size below 4096 in the open
Why it matters: Every peer may send frames of 4096 octets. A peer with a smaller limit cannot read such
frames.
Silent when: never, because the frame alone shows the fault.
How to mend it: Announce a max-frame-size of at least 4096, and provide receive buffers of that size. Reject a
configured max-frame-size below 4096.
"""


SA_FRAME_512: Final = RULES.rule(
    "SA-FRAME-512", "MUST", "definition", usual_answer="amqp:connection:framing-error", octets=True
)
"""A peer sends a SASL frame of more than 4096 octets.

Demands: A SASL frame must not have more than 4096 octets.
Source: AMQP 1.0, draft of 5 April 2011 (revision 1239M), sections 6.3.1 and 3.8.22
Evidence: the sizes of the SASL frames
Why it matters: Before the peers exchange open frames, they have not agreed on a larger frame size. The
receiver may treat the frame as an error and close the connection.
Silent when: a part of the frame was not captured, and amqpscope had to guess where the frame starts.
How to mend it: Keep every SASL frame within 4096 octets. Shorten mechanism lists, initial responses and
challenges, or choose a mechanism whose data fits.
"""
