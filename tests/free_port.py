"""Finds a free port for a server whose port must be known before the server starts."""
import contextlib
import random
import socket


def free_port():
    """Returns a free port below those that the system assigns (32768 and above), so that no other program gets it before the
    server does."""
    while True:
        port = random.randint(20000, 29999)
        with contextlib.suppress(OSError), socket.socket() as probe:
            probe.bind(("127.0.0.1", port))
            return port
