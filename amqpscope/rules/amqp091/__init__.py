"""The rules of AMQP 0-9-1, by subject."""
