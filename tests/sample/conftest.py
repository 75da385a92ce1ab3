import os

import pytest
import shop


@pytest.fixture
def broker():
    """Where RabbitMQ is, with an empty queue in it."""
    url = os.environ.get("AMQP_URL", "amqp://guest:guest@localhost:5672/")
    with shop.connected(url) as connection:
        channel = connection.channel()
        channel.queue_delete(shop.QUEUE)
        channel.queue_declare(shop.QUEUE)
    yield url
    with shop.connected(url) as connection:
        connection.channel().queue_delete(shop.QUEUE)
