"""An application in Python: an order and its notifications in one transaction.

Arguments: the database's address, and what to do as JSON: the order's number, the rows by column
(or, with "function", the parameters of postrider_enqueue), and whether to commit. Prints for each row
whether it was written.
"""

import datetime
import json
import sys
from urllib.parse import unquote, urlsplit

UTC = datetime.timezone.utc


def sqlite(address):
    import sqlite3

    connection = sqlite3.connect(address.path, isolation_level=None)
    # A deferred transaction could not wait for another writer.
    connection.execute("BEGIN IMMEDIATE")
    return connection, connection.cursor(), "?", lambda at: int(at.timestamp() * 1_000_000)


def postgres(address):
    import psycopg

    connection = psycopg.connect(address.geturl())
    cursor = connection.cursor()
    cursor.execute("SET TIME ZONE 'Asia/Karachi'")
    return connection, cursor, "%s", lambda at: at


def mysql(address):
    import pymysql

    connection = pymysql.connect(
        host=address.hostname,
        port=address.port or 3306,
        user=unquote(address.username),
        password=unquote(address.password or ""),
        database=address.path[1:],
    )
    cursor = connection.cursor()
    # The row's own times must not follow the session.
    cursor.execute("SET time_zone = '+05:00'")
    return connection, cursor, "%s", lambda at: at.astimezone(UTC).replace(tzinfo=None)


def insert(kind, cursor, place, row):
    """Whether the row was written; False if its key was there."""
    columns, places = ", ".join(row), ", ".join([place] * len(row))
    sql = f"INSERT INTO postrider_outbox ({columns}) VALUES ({places})"
    if kind == "mysql":
        import pymysql

        try:
            cursor.execute(sql, list(row.values()))
        except pymysql.err.IntegrityError as error:
            if error.args[0] != 1062:
                raise
            return False
        return True
    cursor.execute(f"{sql} ON CONFLICT (tenant_id, dedupe_key) DO NOTHING", list(row.values()))
    return cursor.rowcount == 1


def call(cursor, row):
    named = ", ".join(f"{name} => %s" for name in row)
    cursor.execute(f"SELECT id, created FROM postrider_enqueue({named})", list(row.values()))
    return cursor.fetchone()[1]


def main():
    address, work = urlsplit(sys.argv[1]), json.loads(sys.argv[2])
    kind = {"postgresql": "postgres", "mariadb": "mysql"}.get(address.scheme, address.scheme)
    connection, cursor, place, time = {"sqlite": sqlite, "postgres": postgres, "mysql": mysql}[kind](address)
    cursor.execute(f"INSERT INTO orders (id) VALUES ({place})", (work["order"],))
    written = []
    for row in work["rows"]:
        for name in ("next_attempt_at", "expires_at", "at"):
            if name in row:
                row[name] = time(datetime.datetime.fromisoformat(row[name]))
        written.append(call(cursor, row) if work.get("function") else insert(kind, cursor, place, row))
    if kind == "sqlite":
        cursor.execute("COMMIT" if work["commit"] else "ROLLBACK")
    elif work["commit"]:
        connection.commit()
    else:
        connection.rollback()
    connection.close()
    print(json.dumps(written))


main()
