"""AMQP 0-9-1 endpoints: connection and channel states, as the specification names them."""
