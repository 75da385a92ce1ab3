"""The state of each endpoint of a connection, replayed from what it sent and what it can have received.

Only this package changes state; it never judges. `amqpscope.rules` reads a frame, and the state before the
frame.
"""
