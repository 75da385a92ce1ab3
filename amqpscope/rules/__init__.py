"""The rules: what the specification demands of each frame, judged on the state before it.

`data/` has the list of all rules (`catalogue` reads it): id, level, source, who can break it, and what a
correct peer answers. `amqp10/` has a file for each subject and in it a function for each rule that is
checked.
"""
