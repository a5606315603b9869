"""Word lists of the judge: data, no decisions."""


def words(text: str) -> frozenset[str]:
    """The words of a text that is a list of them."""
    return frozenset(text.split())
