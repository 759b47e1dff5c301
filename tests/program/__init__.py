"""What the parts of a checked program say of themselves."""
