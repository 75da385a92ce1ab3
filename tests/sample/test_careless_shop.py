"""Clients that break the protocol: the first gets what it wants, the second does not know why not."""

import shop


def test_careless_acknowledgements(broker, amqp_capture):
    with amqp_capture.record(port=5672):
        with shop.connected(broker) as connection:
            shop.send(connection.channel(), ["one teapot", "two teapots"])
            assert shop.take_carelessly(connection.channel(), 2) == ["one teapot", "two teapots"]


def test_a_late_order(broker, amqp_capture):
    with amqp_capture.record(port=5672):
        with shop.connected(broker) as connection:
            shop.send_late(connection.channel(), "no teapot")
            connection.process_data_events(time_limit=30)


def test_it_is_expected(broker, amqp_capture):
    with amqp_capture.record(port=5672, fail_on="never") as recording:
        with shop.connected(broker) as connection:
            shop.send(connection.channel(), ["one teapot"])
            assert shop.take_carelessly(connection.channel(), 1) == ["one teapot"]
    assert [finding.rule for finding in recording.errors] == ["amqp091/B-ACK-DUP"]
