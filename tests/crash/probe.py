#!/usr/bin/env python3
"""Measures the latency of GET /healthz of the daemon and of a trivial server (the control): probe.py PORT. A time
counts from the moment at which the request was due. Ends when standard input is closed, and prints
{"daemon" or "control": [[due, end, succeeded], ...]}, times of CLOCK_MONOTONIC in seconds."""

import contextlib
import http.client
import json
import multiprocessing
import socketserver
import sys
import threading
import time

INTERVAL_S, TIMEOUT_S = 0.04, 5


class Control(socketserver.BaseRequestHandler):
    def handle(self):
        while self.request.recv(4096):
            self.request.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")


class ControlServer(socketserver.ThreadingTCPServer):
    request_queue_size = 128


def probe(port, keeps_connection, samples, stopping):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_S)
    due = time.monotonic()
    while not stopping.is_set():
        succeeded = False
        with contextlib.suppress(OSError, http.client.HTTPException):
            connection.request("GET", "/healthz")
            response = connection.getresponse()
            response.read()
            succeeded = response.status == 200
        end = time.monotonic()
        samples.append((due, end, succeeded))
        if not succeeded or not keeps_connection:
            connection.close()
        due = max(due + INTERVAL_S, end - TIMEOUT_S)
        if not succeeded:  # during a restart, requests that were due are skipped
            due = max(due, end)
        time.sleep(max(0, due - time.monotonic()))
    connection.close()


def main():
    control = ControlServer(("127.0.0.1", 0), Control)
    server = multiprocessing.Process(target=control.serve_forever, daemon=True)
    server.start()
    samples, stopping = {"daemon": [], "control": []}, threading.Event()
    probers = [threading.Thread(target=probe, args=(port, keeps_connection, samples[name], stopping))
               for name, port in (("daemon", int(sys.argv[1])), ("control", control.server_address[1]))
               for keeps_connection in (True, False)]
    for prober in probers:
        prober.start()
    sys.stdin.read()
    stopping.set()
    for prober in probers:
        prober.join()
    json.dump(samples, sys.stdout)
    server.terminate()


if __name__ == "__main__":
    main()
