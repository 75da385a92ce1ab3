"""The shop as it should be."""

import shop


def test_orders_arrive_in_order(broker, amqp_capture):
    orders = [f"{number} teapots" for number in range(20)]
    with amqp_capture.record(port=5672):
        with shop.connected(broker) as connection:
            shop.send(connection.channel(), orders)
            assert shop.take(connection.channel(), len(orders)) == orders


def test_the_shop_and_the_store_are_two(broker, amqp_capture):
    with amqp_capture.record(port=5672) as recording:
        with shop.connected(broker) as sending, shop.connected(broker) as taking:
            shop.send(sending.channel(), ["one teapot"])
            assert shop.take(taking.channel(), 1) == ["one teapot"]
    assert recording.errors == []


def test_the_connection_outlives_the_block(broker, amqp_capture):
    with shop.connected(broker) as connection:
        channel = connection.channel()
        with amqp_capture.record(port=5672):
            shop.send(channel, ["one teapot"])
            assert shop.take(channel, 1) == ["one teapot"]
