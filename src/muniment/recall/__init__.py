"""Stage 5: what a run may know, ranked, explained, compiled into a prompt, and replayed."""
