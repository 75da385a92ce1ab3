"""From TCP segments to streams of octets: what each end said, in causal order, and what is missing."""
