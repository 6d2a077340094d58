"""Measures layouts of the outbox row on SQLite. See README.md."""
import argparse
import hashlib
import json
import os
import shutil
import sqlite3
import sys
import time

from postgres import record

BATCH = 100
HOUR = 3_600_000_000

ROW = """
  id BLOB PRIMARY KEY NOT NULL,
  tenant_id TEXT NOT NULL DEFAULT '',
  channel TEXT NOT NULL, recipient TEXT NOT NULL, recipient_address TEXT NOT NULL,
  cc_addresses TEXT, {content}
  status TEXT NOT NULL DEFAULT 'PENDING',
  attempts INTEGER NOT NULL DEFAULT 0, max_attempts INTEGER NOT NULL DEFAULT 11,
  next_attempt_at INTEGER NOT NULL, last_error TEXT, sent_at INTEGER,
  dedupe_key TEXT NOT NULL, created_at INTEGER NOT NULL, updated_at INTEGER NOT NULL,
  claim_seq INTEGER NOT NULL DEFAULT 0, lost_claims INTEGER NOT NULL DEFAULT 0, claimed_by TEXT,
  deferrals INTEGER NOT NULL DEFAULT 0, deferred_since INTEGER,
  resends INTEGER NOT NULL DEFAULT 0, priority INTEGER NOT NULL DEFAULT 0, expires_at INTEGER,
  ordering_key TEXT, category TEXT, locale TEXT, template TEXT, recipients TEXT,
  provider_message_id TEXT, in_doubt INTEGER NOT NULL DEFAULT 0, reason_code TEXT,
  traceparent TEXT, metadata TEXT, accepted_at INTEGER{tail}"""
CONTENT = "subject TEXT, body TEXT NOT NULL, payload TEXT"
ATTEMPT = """
  outbox_id BLOB NOT NULL, claim_seq INTEGER NOT NULL, tenant_id TEXT NOT NULL,
  attempt INTEGER NOT NULL, status TEXT NOT NULL, claimed_by TEXT, started_at INTEGER,
  ended_at INTEGER NOT NULL, provider_message_id TEXT, error TEXT, reason_code TEXT,
  PRIMARY KEY (outbox_id, claim_seq)"""
DUE_WHERE = "status IN ('PENDING','FAILED','SENDING')"

# variant: (where the body is, history, percent failing)
VARIANTS = {"A": ("inside", None, 0), "A-tail": ("tail", None, 0), "B": ("beside", None, 0),
            "C-all": ("inside", "all", 5), "C-5%": ("inside", "some", 5)}

RETURNED = """id, claim_seq, tenant_id, channel, recipient, recipient_address, cc_addresses,
  attempts, max_attempts, dedupe_key, created_at, lost_claims, deferrals, deferred_since, resends,
  priority, expires_at, ordering_key, category, locale, template, recipients,
  provider_message_id, in_doubt, traceparent, metadata"""
CLAIM = f"""UPDATE t SET status = 'SENDING', next_attempt_at = ?2, claim_seq = claim_seq + 1,
  lost_claims = CASE WHEN status = 'SENDING' THEN lost_claims + 1 ELSE lost_claims END,
  updated_at = ?1, claimed_by = 'node-1/4711'
  WHERE id IN (SELECT id FROM t WHERE {DUE_WHERE} AND next_attempt_at <= ?1
               ORDER BY next_attempt_at, id LIMIT {BATCH})
  RETURNING {RETURNED}"""
BODY = ", subject, body, payload"
READ = "SELECT id, subject, body, payload FROM t_body WHERE id IN ({marks})"
# The batch is one JSON document; ids are hex in it, so `unhex` is a registered function.
SETTLE = """UPDATE t SET status = x.status, attempts = attempts + 1, updated_at = ?2,
  sent_at = CASE WHEN x.status = 'SENT' THEN ?2 END, lost_claims = 0,
  next_attempt_at = CASE WHEN x.status = 'SENT' THEN next_attempt_at ELSE ?2 + 86400000000 END,
  provider_message_id = x.message, last_error = x.error
  FROM (SELECT unhex(value ->> 0) AS id, value ->> 1 AS seq, value ->> 2 AS status,
               value ->> 3 AS message, value ->> 4 AS error FROM json_each(?1)) x
  WHERE t.id = x.id AND t.claim_seq = x.seq AND t.status = 'SENDING'"""
HISTORY = """INSERT INTO t_attempt (outbox_id, claim_seq, tenant_id, attempt, status, claimed_by,
    started_at, ended_at, provider_message_id, error)
  SELECT t.id, t.claim_seq, t.tenant_id, t.attempts, t.status, t.claimed_by, ?2, t.updated_at,
         t.provider_message_id, t.last_error
  FROM json_each(?1) x CROSS JOIN t ON t.id = unhex(x.value ->> 0)"""


def connect(path):
    db = sqlite3.connect(path, isolation_level=None)
    db.create_function("unhex", 1, bytes.fromhex, deterministic=True)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA synchronous = FULL")
    return db


def row_id(n):
    """A time ordered id (v7 by shape) made from a row number."""
    tail = hashlib.md5(str(n).encode()).digest()[:7]
    return ((1_700_000_000_000 + n // 4).to_bytes(6, "big")
            + (0x7000 | n & 0xFFF).to_bytes(2, "big") + b"\x80" + tail)


def load(path, place, finished, due, body):
    split = place == "beside"
    for suffix in ("", "-wal", "-shm"):
        if os.path.exists(path + suffix):
            os.remove(path + suffix)
    db = connect(path)
    db.execute("PRAGMA synchronous = OFF")
    columns = ROW.format(content=CONTENT + "," if place == "inside" else "",
                         tail=", " + CONTENT if place == "tail" else "")
    db.execute(f"CREATE TABLE t ({columns}, UNIQUE (tenant_id, dedupe_key))")
    if split:
        db.execute(f"CREATE TABLE t_body (id BLOB PRIMARY KEY NOT NULL, {CONTENT})")
    db.execute(f"CREATE TABLE t_attempt ({ATTEMPT})")
    db.execute(f"CREATE INDEX t_due ON t (next_attempt_at, id) WHERE {DUE_WHERE}")
    filler = " ".join(hashlib.md5(str(i).encode()).hexdigest() for i in range(body // 32 + 1))
    filler = filler[:body]
    now = int(time.time() * 1_000_000)

    def content(n):
        return (f"Your order {n}", f"Order {n}\n{filler}",
                '{"headers": {"List-Id": "orders.example.org"}}')

    def row(n):
        sent = n < finished
        at = now - 24 * HOUR * 3 + n if sent else now - HOUR + n
        key = row_id(n)
        return (key, "email", f"user-{n}", f"user-{n}@example.org", "SENT" if sent else "PENDING",
                int(sent), at, at if sent else None, key.hex(), at, at, "order", "en",
                "order-confirmed", f"00-{key.hex()}-b7ad6b7169203331-01",
                f"{key.hex()}@mx1.example" if sent else None)

    columns = """id, channel, recipient, recipient_address, status, attempts, next_attempt_at,
      sent_at, dedupe_key, created_at, updated_at, category, locale, template, traceparent,
      provider_message_id"""
    total = finished + due
    db.execute("BEGIN IMMEDIATE")
    if split:
        db.executemany(f"INSERT INTO t ({columns}) VALUES ({','.join('?' * 16)})",
                       map(row, range(total)))
        db.executemany("INSERT INTO t_body VALUES (?,?,?,?)",
                       ((row_id(n),) + content(n) for n in range(total)))
    else:
        db.executemany(f"INSERT INTO t ({columns}, subject, body, payload)"
                       f" VALUES ({','.join('?' * 19)})",
                       (row(n) + content(n) for n in range(total)))
    db.execute("COMMIT")
    db.execute("ANALYZE")
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    db.close()


def drain(path, variant, cap):
    place, history, failing = VARIANTS[variant]
    split = place == "beside"
    db = connect(path)
    db.execute("PRAGMA wal_autocheckpoint = 0")  # done below, so that the frames can be counted
    page = db.execute("PRAGMA page_size").fetchone()[0]
    claim = CLAIM if split else CLAIM + BODY
    shm = os.open(path + "-shm", os.O_RDONLY)  # open until the end: a close drops SQLite's locks
    written = done = 0

    def checkpoint(frames_at_least):
        """Checkpoints like the default of 1,000 pages; returns the WAL bytes it ended."""
        frames = int.from_bytes(os.pread(shm, 4, 16), sys.byteorder)  # mxFrame of the WAL index
        if frames < frames_at_least:
            return 0
        busy, log, moved = db.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchone()
        assert not busy and log == moved == frames, (busy, log, moved, frames)
        return frames * (page + 24)

    begin = time.time()
    cpu = time.process_time()
    while time.time() - begin < cap:
        now = int(time.time() * 1_000_000)
        db.execute("BEGIN IMMEDIATE")
        rows = db.execute(claim, (now, now + 60_000_000)).fetchall()
        if rows and split:
            marks = ",".join("?" * len(rows))
            bodies = db.execute(READ.format(marks=marks), [r[0] for r in rows]).fetchall()
            assert len(bodies) == len(rows)
        db.execute("COMMIT")
        if not rows:
            break
        bad = len(rows) * failing // 100
        outcome = [[r[0].hex(), r[1], "SENT", r[0].hex() + "@mx1.exa", None] for r in rows]
        for o in outcome[len(rows) - bad:]:
            o[2:] = ["FAILED", None, "451 4.7.1 try again later"]
        now = int(time.time() * 1_000_000)
        db.execute("BEGIN IMMEDIATE")
        settled = db.execute(SETTLE, (json.dumps(outcome), now)).rowcount
        assert settled == len(rows)
        if history:
            kept = outcome if history == "all" else outcome[len(rows) - bad:]
            db.execute(HISTORY, (json.dumps(kept), now))
        db.execute("COMMIT")
        done += len(rows)
        written += checkpoint(1000)
    seconds = time.time() - begin
    written += checkpoint(1)
    cpu = time.process_time() - cpu
    db.close()
    os.close(shm)
    return {"rate": round(done / seconds), "rows": done, "wal_bytes_row": round(written / done),
            "driver_cpu": round(cpu / seconds, 2),
            "heap_mb": os.path.getsize(path) >> 20}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("variants", nargs="*")
    parser.add_argument("--dir", required=True, help="folder on a real disk, holds the files")
    parser.add_argument("--out", default="results.csv")
    parser.add_argument("--body", type=int, default=1024)
    parser.add_argument("--due", type=int, default=100_000)
    parser.add_argument("--finished", type=int, default=300_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--cap", type=float, default=60)
    args = parser.parse_args()
    variants = args.variants or list(VARIANTS)
    masters = {place: os.path.join(args.dir, f"master-{place}.db")
               for place in {VARIANTS[v][0] for v in variants}}
    for place, path in masters.items():
        load(path, place, args.finished, args.due, args.body)
    copy = os.path.join(args.dir, "run.db")
    for run in range(1, args.runs + 1):
        for variant in variants:
            shutil.copyfile(masters[VARIANTS[variant][0]], copy)
            with open(copy, "rb") as f:
                os.fsync(f.fileno())
            result = drain(copy, variant, args.cap)
            record(args.out, {"test": "sqlite-drain", "variant": variant, "body": args.body,
                              "clients": 1, "run": run} | result)
            os.remove(copy)
    for path in masters.values():
        os.remove(path)


if __name__ == "__main__":
    main()
