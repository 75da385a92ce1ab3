"""Why something in a capture is as it is: the packets that allow, limit or forbid a frame, and what followed.

    with ReplayableCapture("traffic.pcap") as material:
        answer = inquire(material, 17)

`inquiry` explains a packet, `endings` why things ended; `text`, `endings_text` and `json_form` show that.

A capture is read again for each question, so that nothing has to be remembered that nobody asks for.
"""
