"""Stage 3: the review queue, and the verdicts on its proposals."""
