"""Who one is to this server."""

from typing import Annotated

from fastapi import APIRouter, Depends

from muniment.http.caller import Asking, May
from muniment.model.credential import Credential

router = APIRouter(tags=["whoami"])


@router.get("/whoami")
async def whoami(asking: Annotated[Asking, Depends(May(None))]) -> Credential:
    """What the credential of this very request stands for."""
    return asking.credential
