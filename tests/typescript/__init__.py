"""Tests of the TypeScript client without Node.js, and the server that it is tried against."""
