"""Whether whoever calls a verb presented an API key: for what has to follow that key later."""

from contextvars import ContextVar

from muniment.model.api_key import Credential
from muniment.model.context import Principal

# The credential of the request that is being carried out, where an interface checked one.
PRESENTED: ContextVar[Credential | None] = ContextVar("muniment_credential", default=None)


def came_by_key(principal: Principal) -> bool:
    """Whether the principal presented an API key.

    False for one with a token, and for one that a program names which opened the fabric itself.
    """
    credential = PRESENTED.get()
    return credential is not None and credential.key_id is not None and credential.principal == principal
