"""The specifications in machine-readable form, and the generator of the typed tables made from them."""
