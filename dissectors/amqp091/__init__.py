"""AMQP 0-9-1 with RabbitMQ's extensions: frames, methods, content headers, field tables.

`methods` and `registry` are generated from the specification's XML by `dissectors/spec/generate.py`;
the rest is written by hand.
"""
