"""Measurement sessions on a device: steps that run one after the other, with their results in one JSON document."""
