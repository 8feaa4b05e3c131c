"""File formats: bytes in, records out; no GPU and no operators."""
