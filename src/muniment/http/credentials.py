"""Credentials: whom a key or a token stands for, and how often an address may be wrong about it."""

from muniment.errors import Unauthenticated
from muniment.fabric import AsyncFabric
from muniment.http.limits import Guessing
from muniment.http.oidc import TokenVerifier
from muniment.model.credential import Credential


class Credentials:
    """API keys of the fabric's, and tokens of an issuer's where one is set."""

    def __init__(self, fabric: AsyncFabric, tokens: TokenVerifier | None) -> None:
        self._fabric = fabric
        self._tokens = tokens
        self._guessing = Guessing()

    async def check(self, token: str) -> Credential:
        """Whom it stands for at this moment; raises `Unauthenticated`."""
        if self._tokens is not None and not token.startswith("mun_"):
            return await self._tokens.check(token)
        return await self._fabric.keys.check(token)

    async def admit(self, address: str, token: str) -> Credential:
        """The same, for who comes from that address; raises `RateLimited` for one that guesses."""
        self._guessing.before(address, token)
        try:
            credential = await self.check(token)
        except Unauthenticated:
            self._guessing.wrong(address, token)
            raise
        self._guessing.right(token)
        return credential
