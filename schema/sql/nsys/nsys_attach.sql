ATTACH :file AS traces
