"""What every list takes."""

from typing import Annotated

from fastapi import Query

from muniment.fabric.checks import PAGE

Limit = Annotated[int, Query(ge=1, le=PAGE, description="how many at most")]
After = Annotated[str | None, Query(min_length=1, max_length=256, description="`next` of the page before")]
