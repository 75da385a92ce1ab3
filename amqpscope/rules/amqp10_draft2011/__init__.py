"""The rules of the April-2011 draft of AMQP 1.0: one file for each subject."""
