"""AMQP 0-9-1 as people, JSON and tables are told of it."""
