"""Reviewers together: comments, second looks, the progress of a day, saved views, display names of subjects."""
