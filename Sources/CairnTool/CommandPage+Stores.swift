// The commands that change or copy a whole store.
extension CommandPage {
  static let salvage = CommandPage(
    "copy what is sound in a damaged store into a new one",
    operands: ["STORE", "DESTINATION"],
    about: """
      Copies every entry whose newest record is sound into a new store at DESTINATION, which must be
      missing or an empty directory. STORE is not changed; it may lack its manifest or any other
      file. A key whose newest record is damaged is left out: no older value takes its place. Names
      every lost place by file and offset, and by the key if it is known.

      A record that is lost with its key may have been a newer value of a key, or its removal. An
      older value may then be back, and the command warns of it. When the command returns, the copy
      survives power loss. Ctrl-C removes it.

      The exit status is 0 if everything was copied. It is 3 if something was lost, if the manifest
      is unusable or does not list a segment, or if the log ends with torn bytes: usually a crash
      cut a write short, but damage to the last write looks the same. The copy is otherwise complete.
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
      Removes keys. When the command returns, the removals survive power loss. The store gives the
      space back over time while it is in use, or at once with cairn compact (cairn help compact
      says what holds on a full disk).
      """,
    options: [
      OptionUse(.count, "remove keys until at most this many are left"),
      OptionUse(
        .bytes,
        """
        remove keys until the live bytes, which cairn stats shows, are at most this many: a number,
        or 500K, 10M, 2G
        """),
      OptionUse(.olderThan, "remove keys written longer ago: seconds, or 15m, 12h, 7d, 2w"),
      OptionUse(.expired, "remove expired keys; --count and --bytes remove them first"),
      OptionUse(
        .order,
        """
        which keys --count and --bytes remove first: lru, the default, those read or written longest
        ago; largest, those that take the most bytes
        """),
      OptionUse(.json, #"print one object with "removed", "removedBytes" and "damaged""#),
    ],
    alternativeCount: 4,
    notes: """
      When a value was read is known as far as a checkpoint has saved it. cairn get leaves no trace,
      and a store may forget up to an hour of reads in short sessions; the order is then that of
      writing.

      A key whose record is damaged stays; the exit status is then 3.
      """,
    examples: [
      "cairn trim photos.cairn --count 5000",
      "cairn trim photos.cairn --bytes 10G --order largest",
      "cairn trim photos.cairn --older-than 30d",
    ])

  static let compact = CommandPage(
    "give back the space of what was removed or replaced",
    about: """
      Rewrites the live part of files with dead records and removes the old files. It needs some
      free space, about as much as one segment. It may be interrupted at any time.
      """,
    options: [
      OptionUse(
        .json,
        """
        print one object with "bytesBefore" and "bytesAfter" (what the store takes on disk, as in
        cairn stats), "removedSegments", "writtenSegments", "copiedRecords", "droppedTombstones" and
        "unreadableSegments"
        """)
    ],
    notes: """
      A damaged file with dead records stays as it is; the exit status is then 3.

      On a full disk it makes do with the file RESERVE. Live values that are larger may then keep
      their file: trim until it holds none of them, make room elsewhere, or replace the store with
      what cairn salvage copies to another disk.
      """,
    examples: ["cairn compact photos.cairn"])

  static let backup = CommandPage(
    "copy a store into a new one, and check the copy",
    operands: ["STORE", "DESTINATION"],
    about: """
      Copies STORE into a new store at DESTINATION, which must be missing or an empty directory, and
      reads every byte of the copy again before it becomes a store. Shares blocks if the filesystem
      can. A program that has STORE open can make a backup itself, while it writes. Ctrl-C removes
      the copy.
      """,
    options: [
      OptionUse(
        .json,
        #"print one object with "entries", "segments", "bytes", "version" and "damagedValues""#)
    ],
    notes: """
      A value that is damaged in STORE is damaged in the copy; the exit status is then 3. If more
      than values is damaged, there is no copy: see cairn salvage.
      """,
    examples: ["cairn backup photos.cairn /backup/photos.cairn"])

  static let `import` = CommandPage(
    "store the files of a tree",
    operands: ["STORE", "DIRECTORY"],
    about: """
      Stores every file below DIRECTORY: the key is its path relative to DIRECTORY, the value its
      contents. An empty directory becomes a key that ends in / and has an empty value. Creates STORE
      if it is missing, and leaves out its own directory.

      Symbolic links are not followed; they, and pipes, sockets and devices, are skipped and counted.
      A file that cannot be read is reported, and the others go on; the exit status is then 5. Files
      whose value is already there are not written again, so running the command once more completes
      an import that was cut short, as by Ctrl-C. Nothing is removed from the store.

      A value counts as written when it is imported: when files were changed is not kept, so cairn
      trim --older-than counts from the import.
      """,
    options: [
      OptionUse(
        .decode,
        """
        how names become keys: percent decodes the names that the caches TMCache and PINCache write,
        in which a percent sign without two hexadecimal digits stands for itself; none takes every
        path as it is
        """),
      OptionUse(
        .lifetime,
        """
        remove the keys after this time: seconds, or 15m, 12h, 7d, 2w. Every file is then stored,
        even if its value is already there
        """),
      OptionUse(.json, "print one object that says what was done"),
    ],
    notes: """
      Without --decode, files that cairn export put into .cairn-encoded get their keys back.
      """,
    examples: [
      "cairn import photos.cairn ~/photos", "cairn import cache.cairn /tmp/pages --lifetime 7d",
    ])

  static let export = CommandPage(
    "write the values as the files of a new tree",
    operands: ["STORE", "DIRECTORY"],
    about: """
      Writes every value to its own file below DIRECTORY, which must be empty or missing. A key that
      is a relative path names its file. A key that ends in / and has an empty value becomes an empty
      directory.

      Other keys are encoded: those with an empty name, a name . or .., or a name of more than 255
      bytes; those with a zero byte, or with a value although they end in /; those that begin with
      .cairn-encoded; and those whose file would stand where another key needs a directory, as a
      beside a/b. Their files are in DIRECTORY/.cairn-encoded. The name of each is its key with every
      byte except letters, digits, - and _ as %NN, cut into names of 200 bytes; all but the last end
      in +. No two keys share a path, and cairn import gives back the same keys.

      Expired keys are left out, and so is everything beside the values: lifetimes, costs and
      metadata. cairn backup copies all of it. A damaged value is reported, and the others go on; the
      exit status is then 3.
      """,
    options: [OptionUse(.json, "print one object that says what was done")],
    examples: ["cairn export photos.cairn ~/copy"])
}
