"""Following a connection that speaks the April-2011 draft of AMQP 1.0."""
