"""What every list takes."""

from typing import Annotated, Any

from fastapi import Query
from pydantic import BaseModel

from muniment.http.bodies import given
from muniment.verbs.arguments import PAGE

Limit = Annotated[int, Query(ge=1, le=PAGE, description="how many at most")]
After = Annotated[str | None, Query(min_length=1, max_length=256, description="`next` of the page before")]


class Listing(BaseModel):
    """A list that can be narrowed: what a query may say beside which page it is about."""

    limit: Limit = 50
    after: After = None

    def asked(self) -> dict[str, Any]:
        """All that was said, as the list's own arguments: none that the query knows can be left out."""
        return {"limit": self.limit, **given(self)}
