"""What is exported in the clear: one subject's data, or one answer."""

from pydantic import Field

from muniment.model.fields import Artifact
from muniment.model.recall import Recall
from muniment.model.subject import MyExport


class Export(Artifact):
    """An export: everything that is held about a subject, or the answer to a run."""

    subject: MyExport | None = Field(default=None, description="everything that is held about the subject")
    answer: Recall | None = Field(default=None, description="what the run was told, with the provenance of each record")
