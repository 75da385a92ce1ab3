"""AMQP 1.0 as people, JSON and tables are told of it."""
