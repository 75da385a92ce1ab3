"""The full-screen view of a live capture: which connections hurt, and what they look like from inside.

    with Terminal() as terminal:
        view = TopView("lo")
        while view.open:
            view.saw(records)                       # what was analysed since
            view.found(findings)                    # as they are made
            view.amended(findings)                  # when their reaction is known
            view.update(now, analyses, packets, dropped)   # about once a second
            for key in terminal.keys():
                view.key(key)
            terminal.draw(view.render(*terminal.size()))

`model` and its `rows` keep what is shown, `health` says what hurts, `pages` draw it, `view` is moved by
keys, and only `terminal` knows a terminal. None of them waits for anything.
"""
