// The commands that copy entries, as lines or as files.
extension CommandPage {
  static let dump = CommandPage(
    "write every entry as a line of JSON",
    about: """
      Writes one JSON object per line for each entry to standard output, in no order, as the store
      was when the command began. cairn load reads them. Each has:

        key, value         text, or base64 in keyBase64, valueBase64 if it is not UTF-8
        version            the sequence number of the last write
        valueBytes         the size of the value
        metadata           like value; the metadata of a cache contains its tags
        written            the time of writing, in UTC
        accessed           the last access; null while another program has the store open
        expires            the end of the lifetime, or null
        idleLimitSeconds   the idle limit, or null
        cost               the cost, or null

      Expired keys are left out. Damaged entries are passed over, and the exit status is then 3.
      """,
    options: [OptionUse(.prefix, "write only keys that begin with these bytes"), .keyFormat],
    examples: [
      "cairn dump notes.cairn > notes.json",
      "cairn dump old.cairn --prefix user/ | cairn load new.cairn",
    ])

  static let load = CommandPage(
    "store the entries that cairn dump has written",
    about: """
      Reads lines of JSON from standard input, in the form of cairn dump, and stores their entries.
      Only a key and a value are required. Entries that exist are replaced. Creates STORE if it is
      missing. When the command returns, the entries survive a power cut.

      version, valueBytes, written and accessed are ignored: the store sets them. So cairn trim
      --older-than counts from the load. All other members must be known.

      The command ends at the first malformed line, and names its number. The entries before it are
      stored.
      """,
    options: [.wait, OptionUse(.json, #"print one object with "loaded", the number of entries"#)],
    examples: ["cairn load notes.cairn < notes.json"])

  static let `import` = CommandPage(
    "store the files of a directory tree",
    operands: ["DIRECTORY", "STORE"],
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
        remove the keys after this time. Every file is then stored, even if the store already has
        its value
        """),
      .wait,
      OptionUse(.json, "print one object that says what was done"),
    ],
    notes: """
      Without --decode, files that cairn export put into .cairn-encoded get their original keys.
      """,
    examples: [
      "cairn import ~/photos photos.cairn", "cairn import /tmp/pages cache.cairn --lifetime 7d",
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

      Expired keys are left out, as are lifetimes, costs and metadata. cairn backup and cairn dump copy
      all of these. Damaged values are reported and skipped, and the exit status is then 3.
      """,
    options: [OptionUse(.json, "print one object that says what was done")],
    examples: ["cairn export photos.cairn ~/copy"])
}
