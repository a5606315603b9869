"""Embedders: what turns a text into a vector. The built-in one needs no network."""
