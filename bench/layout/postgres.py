"""Measures layouts of the outbox row on PostgreSQL. See README.md."""
import argparse
import csv
import json
import multiprocessing as mp
import os
import statistics
import time
import uuid
from datetime import datetime, timezone

import psycopg

SERVER = os.environ.get("BENCH_DSN", "host=127.0.0.1 port=54330 user=postgres")
DSN = SERVER + " dbname=bench_layout"
BATCH = 100
DRAIN_CAP = 60.0
DUE_BASE = 100_000_000  # row numbers from here on are the due rows of a run

# Columns of the row without (subject, body, payload), which layout B keeps beside it.
ROW = """
  id uuid PRIMARY KEY,
  tenant_id text NOT NULL DEFAULT '',
  channel text NOT NULL,
  recipient text NOT NULL,
  recipient_address text NOT NULL,
  cc_addresses jsonb,
  {content}
  status text NOT NULL DEFAULT 'PENDING',
  attempts int NOT NULL DEFAULT 0,
  max_attempts int NOT NULL DEFAULT 11,
  next_attempt_at timestamptz NOT NULL DEFAULT now(),
  last_error text,
  sent_at timestamptz,
  dedupe_key text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now(),
  updated_at timestamptz NOT NULL DEFAULT now(),
  claim_seq bigint NOT NULL DEFAULT 0,
  lost_claims int NOT NULL DEFAULT 0,
  claimed_by text,
  deferrals int NOT NULL DEFAULT 0,
  deferred_since timestamptz,
  resends int NOT NULL DEFAULT 0,
  priority int NOT NULL DEFAULT 0,
  expires_at timestamptz,
  ordering_key text,
  category text,
  locale text,
  template text,
  recipients jsonb,
  provider_message_id text,
  in_doubt boolean NOT NULL DEFAULT false,
  reason_code text,
  traceparent text,
  metadata jsonb,
  accepted_at timestamptz"""
CONTENT = "subject text, body text NOT NULL, payload jsonb"
ATTEMPT = """
  outbox_id uuid NOT NULL, claim_seq bigint NOT NULL, tenant_id text NOT NULL,
  attempt int NOT NULL, status text NOT NULL, claimed_by text, started_at timestamptz,
  ended_at timestamptz NOT NULL, provider_message_id text, error text, reason_code text,
  PRIMARY KEY (outbox_id, claim_seq)"""
ATTEMPT_COLUMNS = ("outbox_id, claim_seq, tenant_id, attempt, status, claimed_by, started_at,"
                   " ended_at, provider_message_id, error")

# table name: (split body?, storage parameters)
TABLES = {"a": (False, "fillfactor = 100"), "a70": (False, "fillfactor = 70"),
          "a85": (False, "fillfactor = 85"), "at": (False, "toast_tuple_target = 128"),
          "b": (True, "fillfactor = 100")}
MARKUP = ('</td></tr>\n<tr><td style="padding:4px 8px;font-family:Arial,sans-serif;'
          'font-size:14px;color:#333333">')

# variant: (table, claim, settle, percent failing)
VARIANTS = {
    "A": ("a", "row", "unnest", 0),
    "A-jsonb": ("a", "row", "jsonb", 0),
    "A-ff70": ("a70", "row", "unnest", 0),
    "A-ff85": ("a85", "row", "unnest", 0),
    "A-toast": ("at", "row", "unnest", 0),
    "B-join": ("b", "join", "unnest", 0),
    "B-read": ("b", "read", "unnest", 0),
    "C-all": ("a", "row", "history-all", 5),
    "C-5%": ("a", "row", "history-some", 5),
    "D": ("a", "lean", "unnest", 0),
}

DEFAULT = [v for v in VARIANTS if v != "A-toast"]

RETURNED = ["id", "claim_seq", "tenant_id", "channel", "recipient", "recipient_address",
            "cc_addresses", "attempts", "max_attempts", "dedupe_key", "created_at", "lost_claims",
            "deferrals", "deferred_since", "resends", "priority", "expires_at", "ordering_key",
            "category", "locale", "template", "recipients", "provider_message_id", "in_doubt",
            "traceparent", "metadata"]
BODY = ["subject", "body", "payload"]

DUE = """due AS MATERIALIZED (
  SELECT id FROM {t} WHERE status IN ('PENDING','FAILED','SENDING') AND next_attempt_at <= $1
  ORDER BY next_attempt_at, id LIMIT 100 FOR UPDATE SKIP LOCKED)"""
STAMP = """UPDATE {t} o SET status = 'SENDING', next_attempt_at = $2, claim_seq = o.claim_seq + 1,
  lost_claims = CASE WHEN o.status = 'SENDING' THEN o.lost_claims + 1 ELSE o.lost_claims END
  {more} FROM due WHERE o.id = due.id"""
FULL = ", updated_at = $1, claimed_by = 'node-1/4711'"

UNNEST = """(SELECT * FROM unnest($1::uuid[], $2::bigint[], $3::text[], $4::text[], $5::text[])
  AS x(id, claim_seq, status, provider_message_id, error))"""
JSONB = """jsonb_to_recordset($1::jsonb)
  AS x(id uuid, claim_seq bigint, status text, provider_message_id text, error text)"""
SETTLE = """UPDATE {t} o SET status = x.status, attempts = o.attempts + 1, updated_at = {now},
  sent_at = CASE WHEN x.status = 'SENT' THEN {now} END, lost_claims = 0,
  next_attempt_at = CASE WHEN x.status = 'SENT' THEN o.next_attempt_at
                         ELSE {now} + interval '1 day' END,
  provider_message_id = x.provider_message_id, last_error = x.error
  FROM {source} WHERE o.id = x.id AND o.claim_seq = x.claim_seq AND o.status = 'SENDING'"""


def claim_sql(table, kind):
    columns = RETURNED + (BODY if kind in ("row", "lean") else [])
    stamp = STAMP.format(t=table, more="" if kind == "lean" else FULL)
    due = DUE.format(t=table)
    returning = " RETURNING " + ", ".join("o." + c for c in columns)
    if kind == "join":
        return (f"WITH {due}, o AS ({stamp}{returning}) SELECT o.*, b.subject, b.body, b.payload"
                f" FROM o JOIN {table}_body b ON b.id = o.id")
    return f"WITH {due} {stamp}{returning}"


def settle_sql(table, kind):
    if kind == "jsonb":
        return SETTLE.format(t=table, source=JSONB, now="$2::timestamptz")
    update = SETTLE.format(t=table, source=UNNEST.replace("AS x(", "AS u(") + " x",
                           now="$6::timestamptz")
    if kind == "unnest":
        return update
    where = "" if kind == "history-all" else " WHERE s.status <> 'SENT'"
    return (f"WITH s AS ({update} RETURNING o.id, o.claim_seq, o.tenant_id, o.attempts, o.status,"
            f" o.claimed_by, o.next_attempt_at, o.updated_at, o.provider_message_id, o.last_error)"
            f" INSERT INTO {table}_attempt ({ATTEMPT_COLUMNS}) SELECT * FROM s{where}")


def connect():
    return psycopg.connect(DSN, autocommit=True)


def checked(result):
    if result.status not in (psycopg.pq.ExecStatus.TUPLES_OK, psycopg.pq.ExecStatus.COMMAND_OK):
        raise RuntimeError(result.error_message.decode())
    return result


def stamp(seconds):
    return datetime.fromtimestamp(seconds, timezone.utc).isoformat().encode()


# ---- drain ----------------------------------------------------------------------------------

def drain_worker(variant, barrier, out):
    """Claims and settles through bare libpq calls: only id and claim_seq are decoded."""
    table, claim, settle, failing = VARIANTS[variant]
    pg = connect().pgconn
    checked(pg.prepare(b"claim", claim_sql(table, claim).encode()))
    checked(pg.prepare(b"settle", settle_sql(table, settle).encode()))
    checked(pg.prepare(b"read", f"SELECT id, subject, body, payload FROM {table}_body"
                                f" WHERE id = ANY($1::uuid[])".encode()) if claim == "read"
            else pg.exec_(b"SELECT 1"))
    barrier.wait()
    begin = time.time()
    cpu = time.process_time()
    done = 0
    while time.time() - begin < DRAIN_CAP:
        now = time.time()
        rows = checked(pg.exec_prepared(b"claim", [stamp(now), stamp(now + 60)]))
        n = rows.ntuples
        if n == 0:
            break
        ids = [rows.get_value(i, 0) for i in range(n)]
        seqs = [rows.get_value(i, 1) for i in range(n)]
        if claim == "read":
            bodies = checked(pg.exec_prepared(b"read", [b"{" + b",".join(ids) + b"}"]))
            assert bodies.ntuples == n
        now = stamp(time.time())
        bad = n * failing // 100
        if settle == "jsonb":
            document = json.dumps([
                {"id": i.decode(), "claim_seq": int(s), "status": "SENT",
                 "provider_message_id": f"{i.decode()}@mx1", "error": None}
                for i, s in zip(ids, seqs)])
            values = [document.encode(), now]
        else:
            good = n - bad
            values = [
                b"{" + b",".join(ids) + b"}",
                b"{" + b",".join(seqs) + b"}",
                b"{" + b",".join([b"SENT"] * good + [b"FAILED"] * bad) + b"}",
                b"{" + b",".join([i + b"@mx1" for i in ids[:good]] + [b"NULL"] * bad) + b"}",
                b"{" + b",".join([b"NULL"] * good + [b'"451 4.7.1 try again later"'] * bad) + b"}",
                now]
        settled = checked(pg.exec_prepared(b"settle", values)).command_tuples
        if settled != (n if settle != "history-some" else bad):
            raise RuntimeError(f"settled {settled} of {n}")
        done += n
    out.put((done, begin, time.time(), time.process_time() - cpu))
    pg.finish()


def run_processes(target, clients, args):
    barrier, out = mp.Barrier(clients), mp.Queue()
    processes = [mp.Process(target=target, args=args + (barrier, out)) for _ in range(clients)]
    for p in processes:
        p.start()
    parts = [out.get(timeout=120) for _ in processes]
    for p in processes:
        p.join()
    done = sum(p[0] for p in parts)
    seconds = max(p[2] for p in parts) - min(p[1] for p in parts)
    return done, seconds, sum(p[3] for p in parts)


def wal_start(db):
    db.execute("CHECKPOINT")
    db.execute("SELECT pg_stat_force_next_flush()")  # what this session wrote so far
    db.execute("SELECT 1")
    return db.execute("SELECT pg_current_wal_lsn(), wal_records, wal_fpi FROM pg_stat_wal").fetchone()


def wal_end(db, start, rows):
    end, records, fpi, size = db.execute(
        "SELECT pg_current_wal_lsn(), wal_records, wal_fpi, pg_current_wal_lsn() - %s::pg_lsn"
        " FROM pg_stat_wal", (start[0],)).fetchone()
    db.execute("SELECT pg_switch_wal()")  # pg_walinspect reads flushed records only
    try:
        images = db.execute("SELECT sum(fpi_size) FROM pg_get_wal_stats(%s, %s)",
                            (start[0], end)).fetchone()[0]
        images = round(float(images) / rows)
    except psycopg.errors.UndefinedFile:  # a checkpoint during the run recycled the segments
        images = ""
    return {"wal_bytes_row": round(float(size) / rows), "fpi_bytes_row": images,
            "wal_records_row": round((records - start[1]) / rows, 2),
            "fpi_row": round((fpi - start[2]) / rows, 3)}


def drain(db, variant, clients, rows, body):
    table = VARIANTS[variant][0]
    fill(db, table, DUE_BASE, rows, "DUE", body)
    db.execute("DROP TABLE IF EXISTS " + table + "_attempt")
    db.execute(f"CREATE TABLE {table}_attempt ({ATTEMPT}) WITH (autovacuum_enabled = off)")
    db.execute("VACUUM " + table)
    start = wal_start(db)
    done, seconds, cpu = run_processes(drain_worker, clients, (variant,))
    result = {"rate": round(done / seconds), "rows": done, "driver_cpu": round(cpu / seconds, 2)}
    result |= wal_end(db, start, done)
    result["heap_mb"], result["index_mb"], result["extra_mb"] = sizes(db, table)
    first, last = row_id(DUE_BASE), row_id(DUE_BASE + rows)
    for name in names(table):
        db.execute(f"DELETE FROM {name} WHERE id >= {first} AND id < {last}")
        db.execute("VACUUM " + name)
    return result


def names(table):
    return [table, table + "_body"] if TABLES[table][0] else [table]


def sizes(db, table):
    """Megabytes: row table with TOAST, its indexes, companion tables with everything."""
    return db.execute(
        "SELECT pg_table_size(%s) >> 20, pg_indexes_size(%s) >> 20,"
        " (coalesce(pg_total_relation_size(to_regclass(%s)), 0)"
        "  + coalesce(pg_total_relation_size(to_regclass(%s)), 0)) >> 20",
        (table, table, table + "_body", table + "_attempt")).fetchone()


# ---- loading --------------------------------------------------------------------------------

def row_id(n):
    """SQL for a time ordered uuid (v7 by shape) made from a row number."""
    return (f"(lpad(to_hex(1700000000000 + ({n})::bigint / 4), 12, '0') || '7'"
            f" || lpad(to_hex(({n})::bigint & 4095), 3, '0') || '8'"
            f" || substr(md5(({n})::text), 1, 15))::uuid")


def fill(db, table, first, count, state, body):
    """Rows numbered from `first`; state is SENT, TOMORROW or DUE."""
    status = "SENT" if state == "SENT" else "PENDING"
    due = {"SENT": "now() - interval '3 days' + n * interval '10 microseconds'",
           "TOMORROW": "now() + interval '1 day' + n * interval '10 microseconds'",
           "DUE": f"now() - interval '1 hour' + (n - {first}) * interval '10 microseconds'"}[state]
    sent = due if state == "SENT" else "NULL"
    columns = ("id, channel, recipient, recipient_address, status, attempts, next_attempt_at,"
               " sent_at, dedupe_key, created_at, updated_at, category, locale, template,"
               " traceparent, provider_message_id")
    values = (f"u, 'email', 'user-' || n, 'user-' || n || '@example.org', '{status}',"
              f" {1 if state == 'SENT' else 0}, {due}, {sent}, u::text, {due}, {due}, 'order', 'en',"
              f" 'order-confirmed', '00-' || md5(n::text) || '-b7ad6b7169203331-01',"
              + (" u::text || '@mx1'" if state == "SENT" else " NULL"))
    content = ("'Your order ' || n, 'Order ' || n || chr(10) || (SELECT text FROM filler),"
               """ '{"headers": {"List-Id": "orders.example.org"}}'::jsonb""")
    source = (f" FROM (SELECT n, {row_id('n')} AS u"
              f" FROM generate_series({first}, {first + count - 1}) n) s")
    db.execute("SET synchronous_commit = off")
    with db.transaction():
        between, body = (MARKUP, int(body[:-1])) if body.endswith("m") else (" ", int(body))
        db.execute("CREATE TEMP TABLE filler ON COMMIT DROP AS SELECT left(string_agg(md5(i::text),"
                   f" '{between}'), {body}) AS text FROM generate_series(1, {body // 32 + 1}) i")
        if TABLES[table][0]:
            db.execute(f"INSERT INTO {table} ({columns}) SELECT {values}{source}")
            db.execute(f"INSERT INTO {table}_body SELECT u, {content}{source}")
        else:
            db.execute(f"INSERT INTO {table} ({columns}, subject, body, payload)"
                       f" SELECT {values}, {content}{source}")
    db.execute("SET synchronous_commit = on")


def load(tables, finished, tomorrow, body):
    with psycopg.connect(SERVER + " dbname=postgres", autocommit=True) as db:
        if not db.execute("SELECT 1 FROM pg_database WHERE datname = 'bench_layout'").fetchone():
            db.execute("CREATE DATABASE bench_layout")
    with connect() as db:
        db.execute("CREATE EXTENSION IF NOT EXISTS pg_walinspect")
        for table in tables:
            begin = time.time()
            split, parameters = TABLES[table]
            db.execute(f"DROP TABLE IF EXISTS {table}, {table}_body, {table}_attempt")
            db.execute(f"CREATE TABLE {table} ({ROW.format(content='' if split else CONTENT + ',')},"
                       f" UNIQUE (tenant_id, dedupe_key)) WITH ({parameters})")
            if split:
                db.execute(f"CREATE TABLE {table}_body (id uuid PRIMARY KEY, {CONTENT})")
            db.execute(f"CREATE INDEX {table}_due ON {table} (next_attempt_at, id)"
                       " WHERE status IN ('PENDING','FAILED','SENDING')")
            fill(db, table, 0, finished, "SENT", body)
            fill(db, table, finished, tomorrow, "TOMORROW", body)
            for name in names(table):
                db.execute("VACUUM ANALYZE " + name)
            db.execute("CHECKPOINT")
            print(f"# loaded {table} in {time.time() - begin:.0f} s,"
                  f" MB (heap, index, companion): {sizes(db, table)}", flush=True)


# ---- single-row enqueue ---------------------------------------------------------------------

def insert_worker(table, seconds, body, barrier, out):
    pg = connect().pgconn
    row = ("id, channel, recipient, recipient_address, next_attempt_at, dedupe_key, created_at,"
           " updated_at, category, locale, template, traceparent")
    marks = "$1, $2, $3, $4, $5, $6, $5, $5, $7, $8, $9, $10"
    if TABLES[table][0]:
        checked(pg.prepare(b"row", f"INSERT INTO {table} ({row}) VALUES ({marks})".encode()))
        checked(pg.prepare(b"body", f"INSERT INTO {table}_body VALUES ($1, $2, $3, $4)".encode()))
    else:
        checked(pg.prepare(b"row", f"INSERT INTO {table} ({row}, subject, body, payload)"
                                   f" VALUES ({marks}, $11, $12, $13)".encode()))
    text = "x".join(uuid.uuid4().hex for _ in range(body // 33 + 1))[:body].encode()
    payload = b'{"headers": {"List-Id": "orders.example.org"}}'
    barrier.wait()
    begin = time.time()
    cpu = time.process_time()
    done = 0
    while time.time() - begin < seconds:
        now = time.time()
        # later than every loaded row, never due
        high = (int(now * 1000) << 80) | (7 << 76) | (2 << 62)
        key = str(uuid.UUID(int=high | (uuid.uuid4().int & ((1 << 62) - 1)))).encode()
        values = [key, b"email", b"user-1", b"user-1@example.org", stamp(now + 864000), key,
                  b"order", b"en", b"order-confirmed",
                  b"00-4bf92f3577b34da6a3ce929d0e0e4736-b7ad6b7169203331-01"]
        content = [b"Your order", text, payload]
        checked(pg.exec_(b"BEGIN"))
        if TABLES[table][0]:
            checked(pg.exec_prepared(b"row", values))
            checked(pg.exec_prepared(b"body", [key] + content))
        else:
            checked(pg.exec_prepared(b"row", values + content))
        checked(pg.exec_(b"COMMIT"))
        done += 1
    out.put((done, begin, time.time(), time.process_time() - cpu))
    pg.finish()


def insert(db, table, clients, seconds, body):
    start = wal_start(db)
    first = f"'{uuid.UUID(int=int(time.time() * 1000) << 80)}'"
    done, took, cpu = run_processes(insert_worker, clients, (table, seconds, body))
    result = {"rate": round(done / took), "rows": done, "driver_cpu": round(cpu / took, 2)}
    result |= wal_end(db, start, done)
    for name in names(table):
        db.execute(f"DELETE FROM {name} WHERE id >= {first}")
        db.execute("VACUUM " + name)
    return result


# ---- results --------------------------------------------------------------------------------

FIELDS = ["test", "variant", "body", "clients", "run", "rate", "rows", "wal_bytes_row",
          "fpi_bytes_row", "wal_records_row", "fpi_row", "driver_cpu", "heap_mb", "index_mb",
          "extra_mb"]


def record(path, result):
    print({k: result[k] for k in result}, flush=True)
    new = not os.path.exists(path)
    with open(path, "a", newline="") as f:
        out = csv.DictWriter(f, FIELDS)
        if new:
            out.writeheader()
        out.writerow(result)


def summary(path):
    groups = {}
    with open(path) as f:
        for r in csv.DictReader(line for line in f if not line.startswith("#")):
            size = round(int(r["rows"]), -4) if r["test"] != "pg-insert" else 0
            groups.setdefault((r["test"], r["variant"], r["body"], r["clients"], size),
                              []).append(r)
    for key, rows in groups.items():
        def mid(name):
            values = [float(r[name]) for r in rows if r.get(name)]
            return f"{statistics.median(values):g}" if values else "-"
        rates = [int(r["rate"]) for r in rows]
        print(*key, f"{statistics.median(rates):.0f} ({min(rates)}-{max(rates)}, n={len(rates)})",
              *(f"{name}={mid(name)}" for name in FIELDS[7:]))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("command", choices=["load", "drain", "insert", "summary"])
    parser.add_argument("names", nargs="*", help="tables (load, insert) or variants (drain)")
    parser.add_argument("--out", default="results.csv")
    parser.add_argument("--clients", default="")
    parser.add_argument("--rows", type=int, default=60_000, help="due rows of one drain")
    parser.add_argument("--body", default="1024", help="bytes of body; 4096m: compressible markup")
    parser.add_argument("--finished", type=int, default=1_000_000)
    parser.add_argument("--tomorrow", type=int, default=500_000)
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--run", type=int, default=1, help="number of the pass, for the results")
    args = parser.parse_args()
    if args.command == "load":
        load(args.names or ["a", "a70", "a85", "b"], args.finished, args.tomorrow, args.body)
    elif args.command == "summary":
        summary(args.out)
    else:
        default = "1,4" if args.command == "drain" else "1,8"
        clients = [int(c) for c in (args.clients or default).split(",")]
        with connect() as db:
            for name in args.names or (DEFAULT if args.command == "drain" else ["a", "b"]):
                for c in clients:
                    if args.command == "drain":
                        result = drain(db, name, c, args.rows, args.body)
                    else:
                        result = insert(db, name, c, args.seconds, int(args.body))
                    if args.run:
                        record(args.out, {"test": "pg-" + args.command, "variant": name,
                                          "body": args.body, "clients": c, "run": args.run} | result)


if __name__ == "__main__":
    main()
