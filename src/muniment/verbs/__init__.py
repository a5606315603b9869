"""What a verb is: its declaration, its input, and what is generated from it."""
