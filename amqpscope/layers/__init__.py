"""What stands between TCP and AMQP: layers that take octets and hand on those that they carry."""
