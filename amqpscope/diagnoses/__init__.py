"""Diagnoses: who waits for whom, since when, and why. They break no rule and accuse nobody."""
