"""How frames of the draft of April 2011 are shown."""
