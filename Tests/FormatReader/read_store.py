#!/usr/bin/env python3
"""Lists the entries of a Cairn store and checks every checksum in it.

Written from Docs/FileFormat.md alone, whose sections the comments name, to prove that the document
is enough. Python 3.8, standard library only; nothing is written.

    read_store.py [--now MS] [--boot same|other] DIRECTORY

Prints one JSON object a line for each key, in the order of the keys: key, value, metadata (all in
hexadecimal), sequence, written, expiry, idleLimit, cost. A value that is damaged is null. With
--now, entries that have expired at that time (ms) are left out. --boot says whether the machine is
the one, since the same start, on which the store was last written; the default is to find out.

Exits with 0; 3 where something is corrupt or damaged (file and offset on stderr); 4 where the
store is open elsewhere.
"""

import argparse
import fcntl
import json
import os
import re
import struct
import sys
from collections import namedtuple

HIGHEST_NUMBER = 1 << 62
HEADER_SIZE = 72
PUT, TOMBSTONE, ROLL, EXTENSION = 1, 2, 3, 4
EXPIRY, IDLE_LIMIT, COST, METADATA, BATCH, SYNC_MARK = (1 << bit for bit in range(6))


class Corrupt(Exception):
    def __init__(self, file, offset, reason):
        super().__init__(f"corrupt: {file} at offset {offset}: {reason}")


# Section 1: CRC32C, two bytes a step.


def byte_table():
    for register in range(256):
        for _ in range(8):
            register = register >> 1 ^ (0x82F63B78 if register & 1 else 0)
        yield register


BYTES = list(byte_table())
PAIRS = [BYTES[(BYTES[low] & 0xFF) ^ high] ^ BYTES[low] >> 8
         for high in range(256) for low in range(256)]


def crc32c(data, before=0):
    """The checksum of data, or of the bytes whose checksum is `before` followed by data."""
    register = before ^ 0xFFFFFFFF
    even = len(data) & ~1
    for pair in struct.unpack_from("<%dH" % (even // 2), data):
        register = register >> 16 ^ PAIRS[(register ^ pair) & 0xFFFF]
    for byte in data[even:]:
        register = register >> 8 ^ BYTES[(register ^ byte) & 0xFF]
    return register ^ 0xFFFFFFFF


# Section 4: the manifest.

Listed = namedtuple("Listed", "id salt length lowest highest compacted", defaults=(0, 0, 0))


class Manifest:
    def __init__(self, data):
        def require(holds, offset, reason):
            if not holds:
                raise Corrupt("MANIFEST", offset, reason)

        require(140 <= len(data) <= 64 << 20, 0, "size")
        require(data[:8] == b"\x8bCRNM\r\n\x1a", 0, "magic")
        major, _, size = struct.unpack_from("<HHI", data, 8)
        intact = crc32c(data[:-4]) == struct.unpack("<I", data[-4:])[0]
        require(not intact or major == 1, 8, f"major version {major} is not supported")
        require(size == len(data), 12, "size")
        require(intact, 0, "checksum")
        (self.uuid, self.generation, self.next_id, _, self.floor, last_sequence, _, self.time,
         self.boot, state, opens, sealeds, pendings, retireds, _) = struct.unpack_from(
             "<16sQQ16sQQQq16s6I", data, 16)
        self.clean = state & 1 == 1
        require(len(data) == 140 + 24 * opens + 48 * sealeds + 8 * (pendings + retireds), 116,
                "counts")
        start = 136 + 24 * opens
        self.open = [Listed(*entry) for entry in struct.iter_unpack("<3Q", data[136:start])]
        self.sealed = [Listed(*entry)
                       for entry in struct.iter_unpack("<6Q", data[start:start + 48 * sealeds])]
        listed = self.open + self.sealed
        require(len({entry.id for entry in listed}) == len(listed), 136, "an id is listed twice")
        require(all(entry.id < self.next_id for entry in listed), 136, "id beyond the next")
        numbers = [self.next_id, self.floor, last_sequence]
        numbers += [number for entry in listed for number in entry[3:]]
        require(max(numbers) <= HIGHEST_NUMBER, 40, "number too high")
        require(all(HEADER_SIZE <= entry.length <= 1 << 40 or
                    entry in self.open and not self.clean and entry.length == 0
                    for entry in listed), 136, "length")


# Sections 5 and 6: segments and records.

Record = namedtuple("Record", "segment offset end kind flags sequence written expiry idle cost "
                    "index count mark key metadata value value_end sound")


class Segment:
    def __init__(self, path, entry, uuid):
        self.entry = entry
        self.name = "seg-%016x" % entry.id
        try:
            with open(os.path.join(path, self.name), "rb") as file:
                self.data = memoryview(file.read())
        except FileNotFoundError:
            raise Corrupt(self.name, 0, "the file is missing")
        if not HEADER_SIZE <= len(self.data) <= 1 << 40:
            raise Corrupt(self.name, len(self.data), "the file is too short or too long")
        if self.data[:8] != b"\x8bCRNS\r\n\x1a":
            raise Corrupt(self.name, 0, "magic")
        (major, _, _, own_uuid, own_id, salt, self.base_sequence, self.base_time,
         checksum) = struct.unpack_from("<HHI16sQQQqI", self.data, 8)
        if crc32c(self.data[:64]) != checksum:
            raise Corrupt(self.name, 0, "checksum of the header")
        if major != 1:
            raise Corrupt(self.name, 8, f"major version {major} is not supported")
        if not (1 <= self.base_sequence <= HIGHEST_NUMBER and abs(self.base_time) <= 1 << 50):
            raise Corrupt(self.name, 48, "bases")
        if (own_uuid, own_id, salt) != (uuid, entry.id, entry.salt):
            raise Corrupt(self.name, 16, "not the segment that the manifest lists")
        if self.data[68:72] != bytes(4):
            raise Corrupt(self.name, 68, "reserved bytes")
        self.seed = crc32c(struct.pack("<QQ", salt, own_id))

    def record(self, offset, end):
        """The valid record at an offset, or None; `sound` says whether its value is."""
        if offset + 24 > end:
            return None
        (checksum, value_checksum, sequence, written, value_size, key_size, kind,
         flags) = struct.unpack_from("<IIIIIHBB", self.data, offset)
        if not PUT <= kind <= EXTENSION or flags > 0x3F:
            return None
        position = offset + 24
        optional = {EXPIRY: None, IDLE_LIMIT: None, COST: None, METADATA: 0, SYNC_MARK: 0}
        index = count = 0
        for flag, layout in ((EXPIRY, "<q"), (IDLE_LIMIT, "<Q"), (COST, "<Q"), (METADATA, "<H"),
                             (BATCH, "<II"), (SYNC_MARK, "<Q")):
            if not flags & flag:
                continue
            if position + struct.calcsize(layout) > end:
                return None
            fields = struct.unpack_from(layout, self.data, position)
            position += struct.calcsize(layout)
            if flag == BATCH:
                index, count = fields
                if index >= count:
                    return None
            else:
                optional[flag] = fields[0]
        if kind == ROLL:
            if key_size or value_size or flags:
                return None
        elif kind == EXTENSION:
            if not key_size or value_size or flags & 0xF != EXPIRY | COST:
                return None
        elif key_size == 0 or kind == TOMBSTONE and value_size:
            return None
        metadata_start = position + key_size
        head_end = metadata_start + optional[METADATA]
        value_end = head_end + value_size
        next_offset = value_end + 7 & ~7
        if next_offset > end:
            return None
        seed = crc32c(struct.pack("<Q", offset), self.seed)
        if crc32c(self.data[offset + 4:head_end], seed) != checksum:
            return None
        value = self.data[head_end:value_end]
        return Record(
            self, offset, next_offset, kind, flags, self.base_sequence + sequence,
            (self.base_time + written) * 1000, optional[EXPIRY], optional[IDLE_LIMIT],
            optional[COST], index, count, optional[SYNC_MARK],
            bytes(self.data[position:metadata_start]), bytes(self.data[metadata_start:head_end]),
            value, value_end, crc32c(value) == value_checksum)


class BatchProgress:
    """Section 7: whether records follow one another as those of batches must."""

    expected = None  # index and count of the next record, inside a batch

    def accepts(self, record):
        place = (record.index, record.count) if record.flags & BATCH else None
        if self.expected is None and place and record.index == 0:
            self.expected = place
        if self.expected != place:
            return False
        if place:
            self.expected = None if place[0] + 1 == place[1] else (place[0] + 1, place[1])
        return True


def sound_records(segment, end):
    """Section 9: all records of a segment, which must be sound up to `end`."""
    if end > len(segment.data):
        raise Corrupt(segment.name, len(segment.data), "the file is shorter than its length")
    offset, progress = HEADER_SIZE, BatchProgress()
    while offset < end:
        record = segment.record(offset, end)
        if record is None:
            raise Corrupt(segment.name, offset, "no valid record")
        if not progress.accepts(record):
            raise Corrupt(segment.name, offset, "out of place in its batch")
        offset = record.end
        if record.kind == ROLL:
            if offset != end:
                raise Corrupt(segment.name, offset, "the roll is not at the end")
            return
        if any(segment.data[record.value_end:offset]):
            raise Corrupt(segment.name, record.value_end, "padding")
        entry = segment.entry
        if entry.highest and not entry.lowest <= record.sequence <= entry.highest:
            raise Corrupt(segment.name, record.offset, "sequence number")
        yield record
    if progress.expected:
        raise Corrupt(segment.name, end, "a batch is not complete")


# Section 10: where the log of a store ends that is not clean.


class Tail:
    """Steps 1 and 2, for one segment."""

    def __init__(self, segment, highest):
        self.segment = segment
        self.highest = highest  # the highest sequence number in the log so far, 0 if none is known
        self.mark = segment.entry.length
        self.rolled = self.has_later = False
        self.hole = HEADER_SIZE
        self.last_unit = None
        self.unsound = []  # (record, start of its unit)
        self.scan()
        if not self.rolled:
            self.search()
        self.is_empty = self.last_unit is None and not self.rolled

    def scan(self):
        size, progress, offset, unsound = len(self.segment.data), BatchProgress(), HEADER_SIZE, []
        highest = [self.highest]
        while (record := self.segment.record(offset, size)) and progress.accepts(record):
            self.mark = max(self.mark, record.mark)
            highest.append(record.sequence - (record.kind == ROLL))
            offset = record.end
            if record.kind == ROLL:
                self.rolled = True
                self.hole = offset
                self.highest = max(highest)
                return
            if not record.sound:
                unsound.append(record)
            if progress.expected is None:
                self.last_unit = self.hole
                self.unsound += [(record, self.hole) for record in unsound]
                unsound = []
                self.hole = offset
                self.highest = max(highest)

    def search(self):
        batch, offset = None, self.hole
        data_end = len(bytes(self.segment.data).rstrip(b"\0"))  # beyond are zeros only
        while offset < data_end:
            record = self.segment.record(offset, len(self.segment.data))
            if record is None:
                offset += 8
                continue
            self.mark = max(self.mark, record.mark)
            of_batch = (record.sequence - record.index, record.count)
            if record.flags & BATCH and (record.index or offset == self.hole) and (
                    self.highest == 0 or of_batch[0] == self.highest + 1) and (
                    batch in (None, of_batch)):
                batch = of_batch
            else:
                self.has_later = True
            offset = record.end


def ends_of_log(segments, same_boot):
    """Steps 3 and 4: where each open segment ends, and the number of bytes that are discarded."""
    tails = []
    for segment in segments:
        tails.append(Tail(segment, tails[-1].highest if tails else 0))
    frontier = max(((place, tail.mark) for place, tail in enumerate(tails) if tail.mark),
                   default=(0, 0))

    def cut(place, offset):
        ends = [tail.hole for tail in tails[:place]] + [offset]
        return ends + [HEADER_SIZE] * (len(tails) - len(ends))

    for place, tail in enumerate(tails):
        is_followed = tail.has_later or any(
            not later.is_empty or later.has_later for later in tails[place + 1:])
        for record, unit in tail.unsound:
            is_last = not tail.rolled and unit == tail.last_unit and not is_followed
            if (place, record.offset) >= frontier and (not same_boot or is_last):
                return cut(place, unit)
        if tail.rolled:
            continue
        if (place, tail.hole) < frontier or same_boot and is_followed:
            raise Corrupt(tail.segment.name, tail.hole, "records are lost")
        return cut(place, tail.hole)
    return [tail.hole for tail in tails]


def is_same_boot(manifest):
    try:
        with open("/proc/sys/kernel/random/boot_id") as file:
            return bytes.fromhex(file.read().strip().replace("-", "")) == manifest.boot
    except OSError:
        return False


# Section 8: what counts.


def read_store(path, same_boot=None):
    """The newest put or tombstone of each key."""
    names = os.listdir(path)
    if "MANIFEST" not in names:
        if any(re.fullmatch("(seg|ckpt)-[0-9a-f]{16}", name) for name in names):
            raise Corrupt("MANIFEST", 0, "the file is missing")
        sys.exit(f"{path}: no store")
    with open(os.path.join(path, "MANIFEST"), "rb") as file:
        manifest = Manifest(file.read())
    if same_boot is None:
        # After a sync that failed, LOCK is not empty.
        lost_pages = os.path.getsize(os.path.join(path, "LOCK")) > 0
        same_boot = is_same_boot(manifest) and not lost_pages
    sealed = [Segment(path, entry, manifest.uuid) for entry in manifest.sealed]
    opened = [Segment(path, entry, manifest.uuid) for entry in manifest.open]
    ends = [segment.entry.length for segment in sealed]
    if manifest.clean:
        ends += [segment.entry.length for segment in opened]
    else:
        ends += ends_of_log(opened, same_boot)
    newest, extensions, damaged = {}, [], []
    for segment, end in zip(sealed + opened, ends):
        for record in sound_records(segment, end):
            if not record.sound:
                damaged.append(record)
            if record.kind == EXTENSION:
                extensions.append(record)
                continue
            known = newest.get(record.key)
            if record.sequence > max(manifest.floor, known.sequence if known else 0):
                newest[record.key] = record
    for extension in extensions:
        record = newest.get(extension.key)
        if record is None or record.kind != PUT or record.expiry is None:
            continue
        # In an extension the field of the cost holds the version of the put.
        if extension.cost == record.sequence < extension.sequence:
            newest[record.key] = record._replace(expiry=max(record.expiry, extension.expiry))
    return newest, damaged


def has_expired(record, now):
    return (record.expiry is not None and record.expiry <= now) or record.idle == 0


def main():
    parser = argparse.ArgumentParser(description="Lists the entries of a Cairn store.")
    parser.add_argument("directory")
    parser.add_argument("--now", type=int)
    parser.add_argument("--boot", choices=["same", "other"])
    options = parser.parse_args()
    try:
        with open(os.path.join(options.directory, "LOCK"), "rb") as lock:
            fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            newest, damaged = read_store(
                options.directory, options.boot and options.boot == "same")
    except BlockingIOError:
        print("the store is open elsewhere", file=sys.stderr)
        return 4
    except Corrupt as error:
        print(error, file=sys.stderr)
        return 3
    for _, record in sorted(newest.items()):
        if record.kind == TOMBSTONE or options.now is not None and has_expired(record, options.now):
            continue
        print(json.dumps({
            "key": record.key.hex(), "value": record.value.hex() if record.sound else None,
            "metadata": record.metadata.hex(), "sequence": record.sequence,
            "written": record.written, "expiry": record.expiry, "idleLimit": record.idle,
            "cost": record.cost}))
    for record in damaged:
        print(f"damaged: {record.segment.name} at offset {record.offset}: value", file=sys.stderr)
    return 3 if damaged else 0


if __name__ == "__main__":
    sys.exit(main())
