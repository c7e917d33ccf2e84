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
        """
        remove keys until at most this many bytes are live, as in cairn stats: a number, or 500K,
        10M, 2G
        """),
      OptionUse(.olderThan, "remove keys not written for this long: seconds, or 15m, 12h, 7d, 2w"),
      OptionUse(.expired, "remove expired keys; --count and --bytes remove them first"),
      OptionUse(
        .order,
        """
        which keys --count and --bytes remove first: lru, the default, removes the keys read or
        written longest ago; largest removes the keys that take the most bytes
        """),
      OptionUse(.json, #"print one object with "removed", "removedBytes" and "damaged""#),
    ],
    alternativeCount: 4,
    notes: """
      Access times come from the last checkpoint. cairn get does not change them, and a store may
      lose up to an hour of them in short sessions. Keys without an access time are in the order of
      writing.

      A key whose record is damaged stays, and the exit status is then 3.
      """,
    examples: [
      "cairn trim photos.cairn --count 5000",
      "cairn trim photos.cairn --bytes 10G --order largest",
      "cairn trim photos.cairn --older-than 30d",
    ])

  static let compact = CommandPage(
    "reclaim the space of removed and replaced values",
    about: """
      Copies the live records of files that have dead records, and removes the old files. Needs
      about one segment of free space. You can interrupt it at any time.
      """,
    options: [
      OptionUse(
        .json,
        """
        print one object with "bytesBefore" and "bytesAfter" (the store's disk space, as in
        cairn stats), "removedSegments", "writtenSegments", "copiedRecords", "droppedTombstones" and
        "unreadableSegments"
        """)
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
      reads back every byte of the copy before it becomes a store. Shares blocks if the filesystem
      supports it. A program that has STORE open can make a backup itself while it writes. Ctrl-C
      removes the copy.
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

  static let `import` = CommandPage(
    "store the files of a directory tree",
    operands: ["STORE", "DIRECTORY"],
    about: """
      Stores every file below DIRECTORY. The key is the file's path relative to DIRECTORY, and the
      value its contents. An empty directory becomes a key that ends in / and has an empty value.
      Creates STORE if it is missing, and skips STORE's own directory.

      Symbolic links are not followed. They are skipped and counted, as are pipes, sockets and
      devices. Unreadable files are reported and skipped, and the exit status is then 5. Files whose
      value is already in the store are not written again, so you can run the command again to
      complete an interrupted import. Nothing is removed from the store.

      A value counts as written when it is imported. Modification times of files are not kept, so
      cairn trim --older-than counts from the import.
      """,
    options: [
      OptionUse(
        .decode,
        """
        how names become keys: percent decodes the file names of the caches TMCache and PINCache,
        where a percent sign without two hexadecimal digits stands for itself; none takes every
        path unchanged
        """),
      OptionUse(
        .lifetime,
        """
        remove the keys after this time: seconds, or 15m, 12h, 7d, 2w. Every file is then stored,
        even if the store already has its value
        """),
      OptionUse(.json, "print one object that says what was done"),
    ],
    notes: """
      Without --decode, files that cairn export put into .cairn-encoded get their original keys.
      """,
    examples: [
      "cairn import photos.cairn ~/photos", "cairn import cache.cairn /tmp/pages --lifetime 7d",
    ])

  static let export = CommandPage(
    "write the values as the files of a new tree",
    operands: ["STORE", "DIRECTORY"],
    about: """
      Writes every value to its own file below DIRECTORY, which must be empty or missing. A key that
      is a relative path becomes the path of its file. A key that ends in / and has an empty value
      becomes an empty directory.

      Other keys are encoded: keys with an empty name, a name . or .., or a name of more than 255
      bytes; keys with a zero byte; keys that end in / but have a value; keys that begin with
      .cairn-encoded; and keys whose file would be where another key needs a directory, such as a
      next to a/b. Their files are in DIRECTORY/.cairn-encoded. The path of each is the key with
      every byte except letters, digits, - and _ as %NN, cut into names of 200 bytes; all names but
      the last end in +. No two keys share a path, and cairn import restores the same keys.

      Expired keys are left out, as are lifetimes, costs and metadata. cairn backup copies all of
      these. Damaged values are reported and skipped, and the exit status is then 3.
      """,
    options: [OptionUse(.json, "print one object that says what was done")],
    examples: ["cairn export photos.cairn ~/copy"])
}
