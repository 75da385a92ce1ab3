"""AMQP 1.0 endpoints: connection, session, link and delivery states, as the specification names them."""
