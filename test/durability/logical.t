#!/usr/bin/python3 -B
"""Logical replication, in text and binary form, between two servers of one release.

    test/durability/logical.t       PG_CONFIG names the PostgreSQL that has the extension
"""

from durable import Server, main, own_directory
from replicate import replicate

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
