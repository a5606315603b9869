"""Tests of the clients in other languages, and the server that those clients are tried against."""
