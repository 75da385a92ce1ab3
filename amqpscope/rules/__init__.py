"""The rules: what the specification demands of each frame, judged on the state before the frame.

`amqp10/` and `amqp091/` have a file for each subject, and in it a function for each rule that is checked.
`data/` has tables of the rules that nothing can check. `catalogue` reads both: id, level, source, who can
break the rule, and the answer of a correct peer.
"""
