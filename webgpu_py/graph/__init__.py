"""Values, operators, lowering, memory, plans and sessions; knows no browser and no file."""
