"""Reads text: embedding, words, assertion, redaction, instructions to a model, messages. No storage, no policy."""
