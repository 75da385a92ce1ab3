"""For test suites that talk AMQP: a pytest plugin whose fixture records what is said, and judges it.

`plugin` is what pytest loads, in every run: it imports nothing. `fixture` is what a test is given,
`recording` takes packets into a file while the test runs, `judgement` holds a file against the rules.
"""
