"""The routes of `/v1`: those that follow from the declarations of the verbs, and those that are written by hand."""
