#!/usr/bin/env python3
"""Receives events of rooflined's webhook: verifies their signatures, drops repeats and prints the rest.

WEBHOOK_SECRET=whsec_... webhook_receiver.py [PORT]"""

import base64
import hashlib
import hmac
import http.server
import json
import os
import sqlite3
import sys
import time

KEY = base64.b64decode(os.environ["WEBHOOK_SECRET"].removeprefix("whsec_"))
SEEN = sqlite3.connect(os.environ.get("WEBHOOK_SEEN", "seen.db"))
SEEN.execute("CREATE TABLE IF NOT EXISTS seen (id TEXT PRIMARY KEY)")
MAX_BODY_BYTES, MAX_AGE_S = 1 << 20, 300


def is_signed(headers, body):
    """Returns whether the signature is valid and at most MAX_AGE_S old. An attacker may replay an older request."""
    prefix = f"{headers['webhook-id']}.{headers['webhook-timestamp']}."
    expected = base64.b64encode(hmac.new(KEY, prefix.encode() + body, hashlib.sha256).digest()).decode()
    if not any(hmac.compare_digest("v1," + expected, given) for given in headers.get("webhook-signature", "").split()):
        return False
    return abs(time.time() - int(headers["webhook-timestamp"])) <= MAX_AGE_S


def handle(event):
    data = event["data"]
    for metric in data["metrics"]:
        print(event["type"], data["suite"], metric["metric"], f"{100 * metric['effect_ratio']:+.1f} %", flush=True)


class Receiver(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        length = int(self.headers.get("content-length", 0))
        if length > MAX_BODY_BYTES:
            return self.reply(413)
        body = self.rfile.read(length)
        if not is_signed(self.headers, body):
            return self.reply(401)
        event_id = self.headers["webhook-id"]
        if SEEN.execute("SELECT 1 FROM seen WHERE id = ?", (event_id,)).fetchone() is None:
            handle(json.loads(body))
            with SEEN:  # only after handle(): if it fails, rooflined sends the event again
                SEEN.execute("INSERT INTO seen VALUES (?)", (event_id,))
        self.reply(204)

    def reply(self, status):
        self.send_response(status)
        self.end_headers()


http.server.HTTPServer(("127.0.0.1", int(sys.argv[1]) if len(sys.argv) > 1 else 8080), Receiver).serve_forever()
