// The commands that change or copy a whole store.
extension CommandPage {
  static let salvage = CommandPage(
    "copy the sound part of a damaged store into a new one",
    operands: ["STORE", "DESTINATION"],
    about: """
      Copies every entry whose newest record is sound into a new store at DESTINATION, which must be
      missing or an empty directory. STORE is not changed, and may lack its manifest or any other
      file. If a key's newest record is damaged, the key is left out, even if an older value is
      sound. Names every lost place by file and offset, and by key if known.

      If a record is lost with its key, it may have been a newer value or a removal. An older value
      may then reappear, and the command warns about it. When the command returns, the copy survives
      a power cut. Ctrl-C removes the copy.

      The exit status is 0 if everything was copied. It is 3 if data was lost, if the manifest is
      unusable or does not list a segment, or if the log ends with torn bytes. These usually come
      from a write that a crash cut short, but damage to the last write looks the same.
      """,
    options: [
      OptionUse(
        .json,
        """
        print one object with "entries", "bytes", "lostKeys", "lostBytes", "lostPlaces",
        "tornBytes", "manifest" (used, missing or damaged), "complete", "losses", each with "file",
        "offset", "end", "cause" and "key" (or "keyBase64", or null), and "warnings"; causes and
        warnings are names such as badValue and versionsChanged
        """)
    ],
    examples: ["cairn salvage photos.cairn rescued.cairn"])

  static let trim = CommandPage(
    "remove keys by count, size, age or expiry",
    about: """
      Removes keys. When the command returns, the removals survive a power cut. The store gives the
      space back over time while it is in use, or at once with cairn compact. For full disks, see
      cairn help compact.
      """,
    options: [
      OptionUse(.count, "remove keys until at most this many are left"),
      OptionUse(
        .bytes,
        "remove keys until at most this many bytes are live, as in cairn stats"),
      OptionUse(.olderThan, "remove keys that were written longer ago than this"),
      OptionUse(.unusedFor, "remove keys that were neither read nor written for this long"),
      OptionUse(.expired, "remove expired keys; --count and --bytes remove them first"),
      OptionUse(
        .order,
        """
        which keys --count and --bytes remove first: lru, the default, removes the keys read or
        written longest ago; largest removes the keys that take the most bytes
        """),
      .wait,
      OptionUse(.json, #"print one object with "removed", "removedBytes" and "damaged""#),
    ],
    alternativeCount: 5,
    notes: """
      Access times come from the last checkpoint. cairn get does not change them, and a store may
      lose up to an hour of them in short sessions. Keys without an access time are in the order of
      writing.

      A key whose record is damaged stays, and the exit status is then 3.
      """,
    examples: [
      "cairn trim photos.cairn --count 5000",
      "cairn trim photos.cairn --bytes 10G --order largest",
      "cairn trim photos.cairn --older-than 30d", "cairn trim sessions.cairn --expired",
    ])

  static let compact = CommandPage(
    "reclaim the space of removed and replaced values",
    about: """
      Copies the live records of files that have dead records, and removes the old files. Needs
      about one segment of free space. You can interrupt it at any time.
      """,
    options: [
      .wait,
      OptionUse(
        .json,
        """
        print one object with "bytesBefore" and "bytesAfter" (the store's disk space, as in
        cairn stats), "removedSegments", "writtenSegments", "copiedRecords", "droppedTombstones" and
        "unreadableSegments"
        """),
    ],
    notes: """
      A damaged value is copied as it is. A file with other damage is left unchanged while a key may
      need the damaged part, and the exit status is then 3.

      On a full disk, compaction uses the file RESERVE. A file whose live values are larger than
      RESERVE may then stay. To free it, trim until it has no live values, make room elsewhere on
      the disk, or replace the store with a copy that cairn salvage makes on another disk.
      """,
    examples: ["cairn compact photos.cairn"])

  static let backup = CommandPage(
    "copy a store into a new one, and check the copy",
    operands: ["STORE", "DESTINATION"],
    about: """
      Copies STORE into a new store at DESTINATION, which must be missing or an empty directory, and
      reads back every byte of the copy before it becomes a store. If DESTINATION is an earlier
      backup of STORE, only what has changed since is copied, and the earlier backup stays whole
      until then. Shares blocks if the filesystem supports it. A program that has STORE open can
      make a backup itself while it writes. Ctrl-C removes an unfinished copy.
      """,
    options: [
      OptionUse(
        .json,
        #"print one object with "entries", "segments", "bytes", "version" and "damagedValues""#)
    ],
    notes: """
      Values that are damaged in STORE are damaged in the copy too, and the exit status is then 3.
      If more than values is damaged, no copy is made: see cairn salvage.
      """,
    examples: ["cairn backup photos.cairn /backup/photos.cairn"])
}
