"""Loops over codes: nearest items, items within a radius, rankings."""
