"""Pictures of a capture: the ladder of a connection as text, Mermaid or SVG, and a page with all of it.

`survey` reads the capture once and finds out what is wrong and which connections to draw. `picture` reads it
again and builds their ladders (`amqpscope.report.ladder_model`), bounded by `amqpscope.limits`. The other
modules are the renderers; none of them judges anything.
"""
