"""A proxy as a source of packets: what it forwards, as if it had been captured.

`ProxySource` accepts connections, opens one to the target for each, and forwards octets unchanged. For what
it reads it makes the packets of one TCP connection between the client and the target. So everything behind a
live source works as it does for an interface.

What the packets claim
======================

A capture is evidence of what each peer could have known when it sent a frame
(`amqpscope.tracking.knowledge`). These packets are made, so each of their claims rests on something that this
process has seen:

* A packet with octets is made when the octets were read from their sender. Its time is the time of the read.
* Its acknowledgement says how much of the other stream the sender could have received when it wrote these
  octets. The kernel knows how much the sender's host has acknowledged (SIOCOUTQ), and is asked after the
  read. The segment that brought the octets came before, and no segment takes an acknowledgement back. So the
  sender had received at most so much. An acknowledgement that is too high only excuses a peer: a finding is
  possible instead of certain. One that is too low would accuse a peer of using what it had been given. Where
  the kernel does not say (not Linux), all octets that were handed to the kernel count. A record of TLS counts
  when its last octet does.
* Octets are not acknowledged for a peer because the proxy has read them or holds them.
* Packets without octets show later what a peer's host has acknowledged by then: shortly after octets were
  forwarded, and before very many octets without an answer.
* While the proxy does not read from a peer, because the other one takes nothing, nobody can see what that
  peer writes. The window of the other one is 0 then, as it would be without a proxy, so that no peer is taken
  to be silent. The same holds for a time in which this process did not run (`watchful_selector`).
* FIN and RST are made when the proxy has read the end of a stream, or the error that a reset gives.

What was accepted is delivered: octets before a FIN or a reset reach the other peer before that end does, if
it takes them. Octets that one peer does not take are bounded, since the proxy stops reading from the other.

Both ends of each connection are TCP ends of this process, so a peer's host acknowledges octets before the
other peer has them. The packets do not say that the other peer has them.
"""
