"""Why something in a capture is as it is: the packets that allow, limit or forbid a frame, and what followed.

    from amqpscope.why.inquiry import inquire

    answer = inquire("traffic.pcap", 17)

A capture is read again for each question, so that nothing has to be remembered that nobody asks for.
"""
