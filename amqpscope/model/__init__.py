"""What flows through the whole program: frame records, findings, notes, and what identifies them."""
