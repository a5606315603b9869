"""Corrections of promoted memory, and whether decisions follow them."""
