"""Stage 1: everything that happens is written down once, sealed, before anything is made of it."""
