#!/usr/bin/python3
"""Logical replication, in text and binary form, between two servers of one release.

    test/durability/logical.t       PG_CONFIG names the PostgreSQL that has the extension
"""

import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from durable import Server, main, own_directory  # noqa: E402
from replicate import replicate  # noqa: E402

directory = own_directory()


def run():
    # Little memory for decoding, so that large transactions are spilled and streamed.
    publisher, subscriber = (
        Server(directory, name).init(wal_level="logical", logical_decoding_work_mem="'1MB'").start()
        for name in ("publisher", "subscriber"))
    replicate(publisher, subscriber)
    publisher.stop()
    subscriber.stop()


main(run)
