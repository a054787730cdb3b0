"""A sitting on a device: everything that has to be shown there, one step after the other, kept as one JSON document."""
