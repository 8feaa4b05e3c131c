"""Operator families: one file each, found by operator name through `graph.operator`."""
