"""Enters numbered orders into a ledger, each once, whatever becomes of the session it runs in.

    python3 examples/fenced-ledger.py keep 7000 ledger.db                           # the ledger, somewhere else
    holdfast new --portable -- python3 examples/fenced-ledger.py enter 7000         # who enters orders

Two things make that so. Each order has a key that is the same in every life of the session, so an order that is entered
again is there already. And each entry shows the fence of its life, so a life that was replaced enters nothing more.
"""

import itertools
import json
import os
import socket
import socketserver
import sqlite3
import sys
import time
from contextlib import closing

TABLES = """
CREATE TABLE IF NOT EXISTS fences (session TEXT PRIMARY KEY, fence INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS orders (key TEXT PRIMARY KEY, fence INTEGER NOT NULL, life INTEGER NOT NULL);
"""


def entered(db, order):
    """The ledger's half: one transaction that raises the fence, or refuses."""
    session, fence = order["session"], order["fence"]
    with db:
        db.execute("BEGIN IMMEDIATE")
        db.execute("INSERT OR IGNORE INTO fences VALUES (?, 0)", [session])
        raised = db.execute("UPDATE fences SET fence = ? WHERE session = ? AND fence <= ?", [fence, session, fence])
        if raised.rowcount == 0:
            return "fenced"
        db.execute("INSERT OR IGNORE INTO orders VALUES (?, ?, ?)", [order["key"], fence, order["life"]])
        return "entered"


def keep(port, path):
    class Client(socketserver.StreamRequestHandler):
        def handle(self):
            with closing(sqlite3.connect(path, timeout=10)) as db:
                for line in self.rfile:
                    self.wfile.write(entered(db, json.loads(line)).encode() + b"\n")

    with closing(sqlite3.connect(path, timeout=10)) as db:
        db.executescript(TABLES)
    socketserver.ThreadingTCPServer.allow_reuse_address = True
    with socketserver.ThreadingTCPServer(("127.0.0.1", port), Client) as server:
        server.daemon_threads = True
        print("keeps", path, flush=True)
        server.serve_forever()


def life():
    """Which life this is. Read before each act: a restored process still has the variables of the life it was started in."""
    with open(os.environ["HOLDFAST_LIFE"], encoding="utf-8") as file:
        return json.load(file)


def enter(port):
    connection = None
    for number in itertools.count(1):
        answer = b""
        while not answer:
            try:
                connection = connection or socket.create_connection(("127.0.0.1", port), timeout=10).makefile("rwb")
                now = life()
                order = {"key": f"order-{number:05}", "session": now["session"]}
                order |= {"fence": now["fence"], "life": now["incarnation"]}
                connection.write(json.dumps(order).encode() + b"\n")
                connection.flush()
                answer = connection.readline()
            except OSError:
                pass
            if not answer:
                # Cut, by a restore or by the network. Whether the order arrived is not known: the same key is sent again.
                connection = None
                time.sleep(0.05)
        if answer == b"fenced\n":
            sys.exit("a later life of this session has written to the ledger: this one must not")
        print("entered", number, flush=True)
        time.sleep(0.02)


if __name__ == "__main__":
    keep(int(sys.argv[2]), sys.argv[3]) if sys.argv[1] == "keep" else enter(int(sys.argv[2]))
