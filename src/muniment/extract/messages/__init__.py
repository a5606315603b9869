"""Messages: what people say of themselves, read by rules for English."""

from muniment.extract.messages.extractor import MessageExtractor

__all__ = ["MessageExtractor"]
