"""What each endpoint of a connection is doing: replayed from what it sent and what it can have received.

Only this package changes state; it never judges. `amqpscope.rules` reads the state as it was before a
frame, and the frame.
"""
