"""The consent ledger, and removing the content of memories whose consent ended."""
