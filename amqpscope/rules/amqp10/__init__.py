"""The rules of AMQP 1.0, by subject."""
