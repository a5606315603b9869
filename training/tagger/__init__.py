"""The training data of the reader that marks personal data in texts."""
