"""Diagnoses of AMQP 1.0."""
