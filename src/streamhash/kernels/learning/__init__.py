"""Loops of the methods: steps over pairs, rows and blocks."""
