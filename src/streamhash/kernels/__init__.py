"""Compiled loops, each beside the plain NumPy twin that says what it computes."""
