"""AMQP 1.0: types, frames, performatives, SASL, message sections and transactions.

`performatives`, `sasl`, `messaging`, `transactions` and `registry` are generated from the
specification's XML by `dissectors/spec/generate.py`; the rest is written by hand.
"""
