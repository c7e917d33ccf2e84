#!/usr/bin/env python3
"""Lists the entries of a Cairn store and checks every checksum in it.

Written from Docs/FileFormat.md and its pages alone, whose sections the comments name, to prove that the document
is enough. Python 3.8, standard library only; nothing is written.

    read_store.py [--now MS] [--boot same|other] DIRECTORY

Prints one JSON object a line for each key, in the order of the keys: key, value, metadata (all in
hexadecimal), sequence, written, expiry, idleLimit, cost. A value that is damaged is null. With
--now, entries that have expired at that time (ms) are left out. --boot says whether the machine is
the one, since the same start, on which the store was last written; the default is to find out.

Exits with 0; 1 where there is no store, or no LOCK in it; 3 where something is corrupt or damaged (file
and offset on stderr); 4 where the store is open elsewhere.
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
HIGHEST_INTEGER = (1 << 63) - 1  # what higher costs and idle limits count as
HEADER_SIZE = 72
PUT, TOMBSTONE, ROLL = 1, 2, 3
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

Listed = namedtuple("Listed", "id salt length lowest highest compacted sealed",
                    defaults=(0, 0, 0, False))


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
        (self.uuid, self.generation, self.next_id, self.secret, self.floor, last_sequence,
         self.checkpoint_id, self.time, self.boot, state, opens, sealeds, pendings, retireds,
         self.checkpoint_checksum) = struct.unpack_from("<16sQQ16sQQQq16s6I", data, 16)
        self.clean = state & 1 == 1
        require(len(data) == 140 + 24 * opens + 48 * sealeds + 8 * (pendings + retireds), 116,
                "counts")
        start = 136 + 24 * opens
        self.open = [Listed(*entry) for entry in struct.iter_unpack("<3Q", data[136:start])]
        self.sealed = [Listed(*entry, True)
                       for entry in struct.iter_unpack("<6Q", data[start:start + 48 * sealeds])]
        listed = self.open + self.sealed
        require(len({entry.id for entry in listed}) == len(listed), 136, "an id is listed twice")
        require(all(entry.id < self.next_id for entry in listed), 136, "id beyond the next")
        numbers = [self.next_id, self.floor, last_sequence]
        numbers += [number for entry in listed for number in entry[3:6]]
        require(max(numbers) <= HIGHEST_NUMBER, 40, "number too high")
        self.highest = max(numbers[1:])
        ids = struct.iter_unpack("<Q", data[start + 48 * sealeds:-4])
        self.removable = {id for id, in ids}
        require(all(HEADER_SIZE <= entry.length <= 1 << 40 or
                    entry in self.open and not self.clean and entry.length == 0
                    for entry in listed), 136, "length")


# Sections 5 and 6: segments and records.

Record = namedtuple("Record", "segment offset end kind flags sequence written expiry idle cost "
                    "index count mark key metadata value value_end sound")


class Segment:
    def __init__(self, path, entry, uuid):
        self.entry = entry
        self.flaw = None  # why it is taken for one without records
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

    @classmethod
    def without_header(cls, path, entry, flaw):
        """Section 10: an open segment that has no file or no sound header."""
        segment = cls.__new__(cls)
        segment.entry, segment.flaw = entry, flaw
        segment.name = "seg-%016x" % entry.id
        segment.base_sequence = segment.base_time = 0
        segment.seed = crc32c(struct.pack("<QQ", entry.salt, entry.id))
        segment.data = memoryview(b"")
        if os.path.exists(os.path.join(path, segment.name)):
            with open(os.path.join(path, segment.name), "rb") as file:
                segment.data = memoryview(file.read())
        return segment

    def record(self, offset, end):
        """The valid record at an offset, or None; `sound` says whether its value is."""
        if offset + 24 > end:
            return None
        (checksum, value_checksum, sequence, written, value_size, key_size, kind,
         flags) = struct.unpack_from("<IIIIIHBB", self.data, offset)
        if not PUT <= kind <= ROLL or flags > 0x3F:
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

    expected = None  # index, count and sequence number of the next record, inside a batch

    def accepts(self, record):
        in_batch = record.flags & BATCH
        place = (record.index, record.count, record.sequence) if in_batch else None
        if self.expected is None and place and record.index == 0:
            self.expected = place
        if self.expected != place:
            return False
        if place:
            index, count, sequence = place
            self.expected = None if index + 1 == count else (index + 1, count, sequence + 1)
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
            yield record
            return
        if any(segment.data[record.value_end:offset]):
            raise Corrupt(segment.name, record.value_end, "padding")
        entry = segment.entry
        if entry.sealed and not entry.lowest <= record.sequence <= entry.highest:
            raise Corrupt(segment.name, record.offset, "sequence number")
        yield record
    if progress.expected:
        raise Corrupt(segment.name, end, "a batch is not complete")


# Section 10: where the log of a store ends that is not clean.


def open_segment(path, entry, uuid, same_boot, known):
    """An open segment, which has no records if its header never got to the disk."""
    try:
        return Segment(path, entry, uuid)
    except Corrupt as flaw:
        segment = Segment.without_header(path, entry, flaw)
        if len(segment.data) > 1 << 40:
            raise
        is_unwritten = len(segment.data) < HEADER_SIZE or not any(segment.data[:HEADER_SIZE])
        if known or same_boot and not is_unwritten:
            raise
        tail = Tail(segment, 0, 0)
        if tail.mark or same_boot and not (tail.is_empty and not tail.has_later):
            raise
        segment.data = memoryview(b"")
        return segment


class Tail:
    """Steps 1 and 2, for one segment."""

    def __init__(self, segment, highest, covered):
        self.segment = segment
        self.highest = highest  # the highest sequence number in the log so far, 0 if none is known
        self.seen = 0  # the highest in any record, discarded ones included
        length = max(segment.entry.length, covered)
        if length > len(segment.data):
            raise Corrupt(segment.name, len(segment.data), "the file is shorter than its length")
        # A length of the header alone says nothing.
        self.mark = length if length > HEADER_SIZE else 0
        self.rolled = self.has_later = False
        self.hole = HEADER_SIZE
        self.last_unit = None
        self.unsound = []  # (record, start of its unit)
        self.scan()
        if not self.rolled:
            self.search()
        elif self.hole < length:
            raise Corrupt(segment.name, self.hole, "the roll is before the recorded length")
        self.is_empty = self.last_unit is None and not self.rolled

    def scan(self):
        size, progress, offset, unsound = len(self.segment.data), BatchProgress(), HEADER_SIZE, []
        highest = [self.highest]
        while (record := self.segment.record(offset, size)) and progress.accepts(record):
            self.mark = max(self.mark, record.mark)
            highest.append(record.sequence - (record.kind == ROLL))
            self.seen = max(self.seen, highest[-1])
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
            self.seen = max(self.seen, record.sequence - (record.kind == ROLL))
            of_batch = (record.sequence - record.index, record.count)
            if record.flags & BATCH and (record.index or offset == self.hole) and (
                    self.highest == 0 or of_batch[0] == self.highest + 1) and (
                    batch in (None, of_batch)):
                batch = of_batch
            else:
                self.has_later = True
            offset = record.end


def ends_of_log(segments, same_boot, covered):
    """Steps 3 and 4: where each open segment ends, and the highest sequence number in any record."""
    tails = []
    for segment in segments:
        highest = tails[-1].highest if tails else 0
        tails.append(Tail(segment, highest, covered.get(segment.entry.id, 0)))
    seen = max((tail.seen for tail in tails), default=0)
    frontier = max(((place, tail.mark) for place, tail in enumerate(tails) if tail.mark),
                   default=(0, 0))

    def cut(place, offset):
        ends = [tail.hole for tail in tails[:place]] + [offset]
        return ends + [HEADER_SIZE] * (len(tails) - len(ends)), seen

    for place, tail in enumerate(tails):
        if same_boot and place and tails[place - 1].rolled and tail.segment.flaw:
            raise tail.segment.flaw
        is_followed = tail.has_later or any(
            not later.is_empty or later.has_later for later in tails[place + 1:])
        for record, unit in tail.unsound:
            is_last = not tail.rolled and unit == tail.last_unit and not is_followed
            if (place, record.offset) >= frontier and (not same_boot or is_last):
                return cut(place, unit)
        if tail.rolled:
            continue
        if (place, tail.hole) < frontier or same_boot and is_followed:
            raise tail.segment.flaw or Corrupt(tail.segment.name, tail.hole, "records are lost")
        return cut(place, tail.hole)
    return [tail.hole for tail in tails], seen


def is_same_boot(manifest):
    try:
        with open("/proc/sys/kernel/random/boot_id") as file:
            return bytes.fromhex(file.read().strip().replace("-", "")) == manifest.boot
    except OSError:
        return False


# Section 14: the checkpoint. All of the log is read, so it is needed for its ends only; the rest is compared.

Covered = namedtuple("Covered", "id salt end granule granules live puts live_puts tombstones "
                     "tombstone_bytes newest_tombstone lowest highest expiry idle")
CAN_EXPIRE = 1


def siphash(secret, data):
    """SipHash-1-3: one round for each word, three at the end."""
    mask = (1 << 64) - 1

    def rotated(value, by):
        return (value << by | value >> 64 - by) & mask

    def rounds(count, a, b, c, d):
        for _ in range(count):
            a = a + b & mask
            b = rotated(b, 13) ^ a
            a = rotated(a, 32)
            c = c + d & mask
            d = rotated(d, 16) ^ c
            a = a + d & mask
            d = rotated(d, 21) ^ a
            c = c + b & mask
            b = rotated(b, 17) ^ c
            c = rotated(c, 32)
        return a, b, c, d

    first, second = struct.unpack("<QQ", secret)
    state = (first ^ 0x736F6D6570736575, second ^ 0x646F72616E646F6D,
             first ^ 0x6C7967656E657261, second ^ 0x7465646279746573)
    padded = data + bytes(7 - len(data) % 8) + bytes([len(data) & 0xFF])
    for word, in struct.iter_unpack("<Q", padded):
        a, b, c, d = state
        a, b, c, d = rounds(1, a, b, c, d ^ word)
        state = a ^ word, b, c, d
    a, b, c, d = state
    a, b, c, d = rounds(3, a, b, c ^ 0xFF, d)
    return a ^ b ^ c ^ d


class Checkpoint:
    """The header, and what it says of the segments."""

    def __init__(self, path, manifest):
        self.name = "ckpt-%016x" % manifest.checkpoint_id
        try:
            with open(os.path.join(path, self.name), "rb") as file:
                self.data = data = file.read()
        except FileNotFoundError:
            raise Corrupt(self.name, 0, "the file is missing")
        self.require(len(data) >= 80 and data[:8] == b"\x8bCRNC\r\n\x1a", 0, "magic or size")
        major, _, size = struct.unpack_from("<HHI", data, 8)
        self.require(80 <= size <= min(len(data), 64 << 20), 12, "size")
        checksum, = struct.unpack_from("<I", data, size - 4)
        self.require(crc32c(data[:size - 4]) == checksum == manifest.checkpoint_checksum, size - 4,
                     "checksum")
        self.is_known = major == 1  # another version is left aside
        self.segments, self.shards = [], []
        if not self.is_known:
            return
        (uuid, own_id, floor, self.last, self.tick, count, samples,
         segments) = struct.unpack_from("<16s5Q2I", data, 16)
        self.require(size == 80 + 16 * samples + 112 * segments + 20 * 256 + 8, 12, "size")
        self.require((uuid, own_id) == (manifest.uuid, manifest.checkpoint_id), 16, "another's")
        self.require(floor == manifest.floor, 40, "floor")
        self.require(self.last <= HIGHEST_NUMBER and self.tick < 1 << 44, 48, "bounds")
        ticks = [tick for tick, _ in struct.iter_unpack("<Qq", data[80:80 + 16 * samples])]
        self.require(ticks == sorted(ticks) and max(ticks, default=0) <= self.tick, 80, "samples")
        start = 80 + 16 * samples
        table = start + 112 * segments
        self.segments = [Covered(*fields)
                         for fields in struct.iter_unpack("<QQQIIQQQQQQQQqQ", data[start:table])]
        self.check_segments(manifest, start)
        end, total = size, 0
        for offset, entries, expiring, crc in struct.iter_unpack("<QIII", data[table:size - 8]):
            length = 16 * entries
            self.require(offset == end and expiring <= entries <= 1 << 24
                         and end + length <= len(data), table, "shards")
            self.shards.append((offset, entries, expiring, crc))
            end, total = end + length, total + entries
        self.require(total == count == sum(known.live_puts for known in self.segments), table,
                     "counts")
        oldest, = struct.unpack_from("<I", data, size - 8)
        self.oldest = data[end:]
        self.oldest_offset = end
        self.require(oldest <= min(total, 4096)
                     and len(self.oldest) == (24 * oldest + 4 if oldest else 0),
                     size - 8, "the oldest entries")

    def require(self, holds, offset, reason):
        if not holds:
            raise Corrupt(self.name, offset, reason)

    def check_segments(self, manifest, offset):
        """Section 14: the table of segments, and whether it contradicts the manifest."""
        self.starts = {}  # the segment of each granule
        for number, known in enumerate(self.segments):
            for what, holds in self.bounds(known):
                self.require(holds, offset + 112 * number, what)
            for granule in range(known.granule, known.granule + known.granules):
                self.require(granule not in self.starts, offset + 112 * number, "an overlap")
                self.starts[granule] = known
            self.require(known.id < manifest.next_id, offset + 112 * number, "an id never given")
        table = {known.id: known for known in self.segments}
        self.require(len(table) == len(self.segments), offset, "an id twice")
        for entry in manifest.sealed + manifest.open:
            known = table.get(entry.id)
            if known is None:
                continue
            self.require(entry.salt == known.salt, offset, "another salt")
            if entry.sealed or manifest.clean:
                self.require(known.end <= entry.length, offset, "an end beyond the length")
                self.require(entry.length <= known.granules << 26, offset, "too few granules")

    def bounds(self, known):
        size = known.end - HEADER_SIZE
        yield "end", HEADER_SIZE <= known.end <= 1 << 40 and not known.end % 8
        yield "granule", known.granule > 0
        yield "granules", 0 < known.granules <= (1 << 17) - known.granule
        yield "end beyond its granules", known.end <= known.granules * (64 << 20)
        yield "live bytes", known.live <= size
        yield "tombstone bytes", known.tombstone_bytes <= size - known.live
        yield "records", 24 * (known.puts + known.tombstones) <= size
        yield "live puts", known.live_puts <= known.puts
        yield "numbers", known.lowest <= known.highest <= self.last
        yield "newest tombstone", known.newest_tombstone <= known.highest
        yield "tombstones", bool(known.tombstones) == bool(known.newest_tombstone)

    def place(self, location):
        """The segment and the file offset of a location; None where the checkpoint has none."""
        known = self.starts.get(location >> 23)
        if known is None:
            return None
        offset = (location - (known.granule << 23)) * 8
        return (known.id, offset) if HEADER_SIZE <= offset <= known.end - 24 else None

    def entry(self, data, start, offset):
        """Hash, place and flags of an entry."""
        first, second = struct.unpack_from("<QQ", data, start)
        tick = first & 0xFFFFFF | (second >> 4 & 0xFFFFF) << 24
        place, flags = self.place(second >> 24), second & 15
        self.require(place and tick <= self.tick and flags in (0, CAN_EXPIRE), offset, "an entry")
        return first >> 24, place, flags, tick

    def entries(self, number):
        """The entries of a shard: hash, place and flags."""
        offset, count, expiring, crc = self.shards[number]
        data = self.data[offset:offset + 16 * count]
        self.require(crc32c(data) == crc, offset, "checksum of a shard")
        entries = [self.entry(data, 16 * index, offset + 16 * index)[:3] for index in range(count)]
        hashes = [entry[0] for entry in entries]
        self.require(hashes == sorted(hashes) and expiring == sum(
            entry[2] & CAN_EXPIRE for entry in entries), offset, "entries")
        return entries

    def check_oldest(self):
        if self.oldest:
            checksum, = struct.unpack("<I", self.oldest[-4:])
            self.require(crc32c(self.oldest[:-4]) == checksum, self.oldest_offset,
                         "checksum of the oldest")
        ticks = []
        for start in range(0, len(self.oldest) - 4, 24):
            ticks.append(self.entry(self.oldest, start, self.oldest_offset + start)[3])
            shard, = struct.unpack_from("<Q", self.oldest, start + 16)
            self.require(shard < 256, self.oldest_offset + start, "a shard")
        self.require(ticks == sorted(ticks), self.oldest_offset, "the order of the oldest")

    def compare_counts(self, known, records, roll):
        """Section 14, "Checking one": the counts of a segment are those of its covered records."""
        end = max((record.end for record in records), default=HEADER_SIZE)
        if roll and roll[0] < known.end:
            end = roll[1]
        self.require(end == known.end, 80, "an end inside a record")
        numbers = [record.sequence for record in records]
        tombstones = [record for record in records if record.kind == TOMBSTONE]
        found = (sum(record.kind == PUT for record in records), len(tombstones),
                 sum(record.end - record.offset for record in tombstones),
                 max((record.sequence for record in tombstones), default=0),
                 min(numbers, default=0), max(numbers, default=0))
        self.require(found == (known.puts, known.tombstones, known.tombstone_bytes,
                               known.newest_tombstone, known.lowest, known.highest),
                     80, "counts of a segment")

    def compare(self, manifest, records, newest, rolls):
        """Whether an open through it finds what the log says; `records` are by id and offset."""
        self.check_oldest()
        table = {known.id: known.end for known in self.segments}
        listed = {entry.id for entry in manifest.sealed + manifest.open}
        covered = {id: [] for id in table}
        for (id, offset), record in records.items():
            if id in table:
                is_covered = offset < table[id]
                self.require(is_covered == (record.sequence <= self.last), 48, "last sequence")
                if is_covered:
                    covered[id].append(record)
        for known in self.segments:
            if known.id in listed:
                self.compare_counts(known, covered[known.id], rolls.get(known.id))
        live = dict.fromkeys(table, 0)
        removed = {}
        for record in newest.values():
            if record.kind == TOMBSTONE and record.sequence <= self.last:
                removed[self.hash_bits(manifest, record)] = record
        expected = [{} for _ in range(256)]
        for record in newest.values():
            if record.kind == PUT:
                hash = siphash(manifest.secret, record.key)
                place = record.segment.entry.id, record.offset
                expected[hash & 0xFF][place] = hash >> 24, record
        for number, (offset, *_) in enumerate(self.shards):
            known, left_out = expected[number], set()
            for hash, place, flags in self.entries(number):
                live[place[0]] += 1
                if place[0] not in listed:
                    left_out.add(hash)
                    self.require(number | hash << 8 not in removed, offset,
                                 "an entry of a removed key")
                    continue
                record = records.get(place)
                self.require(record and record.kind == PUT and record.sequence <= self.last and
                             number | hash << 8 == self.hash_bits(manifest, record), offset,
                             "an entry of no put")
                _, now = known.pop(place, (None, None))
                if now is None:
                    self.require(newest[record.key].sequence > self.last, offset,
                                 "an entry of an old put")
                    continue
                self.require((flags & CAN_EXPIRE) == (
                    record.expiry is not None or record.idle is not None), offset, "flags")
            for (id, place), (hash, record) in known.items():
                # An open reads what is not covered; what is older than the checkpoint it knows by it.
                is_read = place >= table[id] if id in table else (
                    record.sequence > self.last or hash in left_out)
                self.require(is_read, offset, "a put is missing")
        for known in self.segments:
            self.require(live[known.id] == known.live_puts, 80, "live puts of a segment")

    @staticmethod
    def hash_bits(manifest, record):
        hash = siphash(manifest.secret, record.key)
        return hash & 0xFF | hash >> 24 << 8


# Section 8: what counts.


def read_store(path, same_boot=None):
    """The newest put or tombstone of each key, and what is damaged."""
    names = os.listdir(path)
    pattern = re.compile("(?:seg|ckpt)-([0-9a-f]{16})")
    if "MANIFEST" not in names:
        if any(pattern.fullmatch(name) for name in names):
            raise Corrupt("MANIFEST", 0, "the file is missing")
        sys.exit(f"{path}: no store")
    with open(os.path.join(path, "MANIFEST"), "rb") as file:
        manifest = Manifest(file.read())
    if same_boot is None:
        # After a sync that failed, LOCK is not empty.
        lost_pages = os.path.getsize(os.path.join(path, "LOCK")) > 0
        same_boot = is_same_boot(manifest) and not lost_pages
    damaged, checkpoint, covered = [], None, {}
    if manifest.checkpoint_id:
        try:
            checkpoint = Checkpoint(path, manifest)
            covered = {known.id: known.end for known in checkpoint.segments}
        except Corrupt as error:
            damaged.append(str(error))
    sealed = [Segment(path, entry, manifest.uuid) for entry in manifest.sealed]
    if manifest.clean:
        opened = [Segment(path, entry, manifest.uuid) for entry in manifest.open]
    else:
        opened = [open_segment(path, entry, manifest.uuid, same_boot,
                               max(entry.length, covered.get(entry.id, 0)))
                  for entry in manifest.open]
    ends = [segment.entry.length for segment in sealed]
    seen = max(manifest.highest, checkpoint.last if covered else 0)
    if manifest.clean:
        ends += [segment.entry.length for segment in opened]
    else:
        open_ends, seen_in_tail = ends_of_log(opened, same_boot, covered)
        ends += open_ends
        seen = max(seen, seen_in_tail)
    newest, records, rolls = {}, {}, {}
    for segment, end in zip(sealed + opened, ends):
        if segment.flaw:
            continue
        for record in sound_records(segment, end):
            if record.kind == ROLL:
                rolls[segment.entry.id] = record.offset, record.end
                continue
            seen = max(seen, record.sequence)
            records[segment.entry.id, record.offset] = record
            if not record.sound:
                damaged.append(f"damaged: {segment.name} at offset {record.offset}: value")
            known = newest.get(record.key)
            if record.sequence > max(manifest.floor, known.sequence if known else 0):
                newest[record.key] = record
    for segment, end in zip(sealed + opened, ends):
        # Section 5: an open segment without records was made ahead.
        is_ahead = not manifest.clean and not segment.entry.sealed and end == HEADER_SIZE
        if segment.base_sequence > seen + 1 and not is_ahead:
            raise Corrupt(segment.name, 48, "base sequence")
    if checkpoint and checkpoint.is_known:
        try:
            checkpoint.compare(manifest, records, newest, rolls)
        except Corrupt as error:
            damaged.append(str(error))
    listed = {segment.name for segment in sealed + opened}
    if manifest.checkpoint_id:
        listed.add("ckpt-%016x" % manifest.checkpoint_id)
    for name in names:
        match = pattern.fullmatch(name)
        if match and name not in listed and int(match[1], 16) < manifest.next_id and (
                int(match[1], 16) not in manifest.removable):
            damaged.append(f"{name} is not listed")
    return newest, damaged


def limited(number):
    return None if number is None else min(number, HIGHEST_INTEGER)


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
    except FileNotFoundError:
        sys.exit(f"{options.directory}: no store, or no LOCK in it")
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
            "written": record.written, "expiry": record.expiry, "idleLimit": limited(record.idle),
            "cost": limited(record.cost)}))
    for what in damaged:
        print(what, file=sys.stderr)
    return 3 if damaged else 0


if __name__ == "__main__":
    sys.exit(main())
