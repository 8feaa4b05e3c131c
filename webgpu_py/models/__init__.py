"""Language models as graphs: one file an architecture, from configuration and stored weights."""
