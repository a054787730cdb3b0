"""Measurement sessions on a device: runs steps and stores their results in one JSON document."""
