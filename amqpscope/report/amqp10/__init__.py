"""AMQP 1.0 as text, JSON and tables show it."""
