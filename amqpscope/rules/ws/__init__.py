"""The rules of WebSocket that peers of AMQP break: of RFC 6455, and of the AMQP WebSocket Binding.

`amqpscope/layers/websocket/conduct.py` recognises the faults and names them. `judge` makes findings of them.
"""
