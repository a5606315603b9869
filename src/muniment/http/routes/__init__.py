"""The routes of `/v1`, one file for each part of the pipeline. Each declares the verb that its role must allow."""
