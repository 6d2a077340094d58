"""A mail sink for tests: accepts everything on 127.0.0.1 and writes it down.

Usage: aiosmtpd_sink.py FILE. Prints the port, then one line per message is appended to FILE
before the message is acknowledged: sender, recipients, MAIL options and data, separated by tabs,
lists by commas, each value in hexadecimal. A recipient whose local part begins with "refused" is
refused for good, one that begins with "later" for now. Ends when its standard input ends.
"""

import asyncio
import os
import sys

from aiosmtpd.smtp import SMTP


def encoded(value):
    if isinstance(value, str):
        value = value.encode("utf-8", "surrogateescape")
    return value.hex()


class Sink:
    def __init__(self, path):
        self.file = open(path, "a", encoding="ascii")

    async def handle_RCPT(self, server, session, envelope, address, options):
        if address.startswith("refused"):
            return "550 5.1.1 no such user"
        if address.startswith("later"):
            return "451 4.2.1 try again later"
        envelope.rcpt_tos.append(address)
        return "250 2.1.5 OK"

    async def handle_DATA(self, server, session, envelope):
        fields = [
            encoded(envelope.mail_from or ""),
            ",".join(encoded(address) for address in envelope.rcpt_tos),
            ",".join(encoded(option) for option in envelope.mail_options),
            encoded(envelope.original_content),
        ]
        self.file.write("\t".join(fields) + "\n")
        self.file.flush()
        return "250 2.0.0 taken"


async def main(path):
    loop = asyncio.get_running_loop()
    sink = Sink(path)
    server = await loop.create_server(
        lambda: SMTP(sink, enable_SMTPUTF8=True, hostname="sink.example.net", loop=loop),
        "127.0.0.1",
        0,
    )
    print(server.sockets[0].getsockname()[1], flush=True)
    # A plain thread's read would keep the process alive; a reader of the loop does not.
    ended = loop.create_future()

    def readable():
        if not os.read(0, 4096) and not ended.done():
            ended.set_result(None)

    loop.add_reader(0, readable)
    await ended


asyncio.run(main(sys.argv[1]))
