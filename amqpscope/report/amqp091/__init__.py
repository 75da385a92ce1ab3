"""AMQP 0-9-1 as text, JSON and tables show it."""
