"""Tests of what end users see and do about themselves."""
