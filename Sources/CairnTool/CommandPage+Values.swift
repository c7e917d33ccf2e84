// The commands for one key, or a few.
extension CommandPage {
  private static let lifetimes = "seconds, which may have decimals, or 15m, 12h, 7d, 2w"

  static let put = CommandPage(
    "store a value, from the argument or standard input",
    operands: ["STORE", "KEY", "[VALUE]"],
    about: """
      Stores VALUE, or standard input up to its end, under KEY. When the command returns, the value
      survives power loss. Creates STORE if it is missing.
      """,
    options: [OptionUse(.lifetime, "remove the key after this time: \(lifetimes)")],
    notes: """
      KEY and VALUE are bytes and need not be UTF-8. Write -- before one that begins with a dash.
      """,
    examples: [
      "cairn put notes.cairn greeting hello",
      "cairn put photos.cairn lake.jpg < lake.jpg",
      "cairn put notes.cairn token abc --lifetime 12h",
    ])

  static let get = CommandPage(
    "write a value to standard output",
    operands: ["STORE", "KEY"],
    about: """
      Writes the bytes of the value to standard output, and nothing else. The exit status is 1 if
      there is no such key.

      A terminal gets only values that are plain text of at most 1 MiB, and a newline after them.
      """,
    examples: [
      "cairn get notes.cairn greeting", "cairn get photos.cairn lake.jpg > lake.jpg",
    ])

  static let info = CommandPage(
    "show what is known of a key: sizes, times, cost",
    operands: ["STORE", "KEY"],
    about: """
      Shows what the store knows of a key besides its value: the version, which is the number of the
      write that made it; the bytes of the value and of its metadata; when it was written, when it
      was last read or written, and when it expires; its idle limit; its cost. A dash stands for
      what it does not have. The exit status is 1 if there is no such key.

      The last access is accurate to 1 % of its age. Entries written since the last checkpoint
      count as accessed when the store is opened.

      Times are in UTC. The value is not read; cairn get and cairn verify find damage in it.
      """,
    options: [
      OptionUse(
        .json,
        """
        print one object with "key" (or "keyBase64", if it is not UTF-8), "version", "valueBytes",
        "metadataBytes", "written", "accessed", "expires", "idleLimitMilliseconds" and "cost"; the
        last three are null if there is none
        """)
    ],
    examples: ["cairn info notes.cairn greeting"])

  static let delete = CommandPage(
    "remove keys",
    operands: ["STORE", "KEY..."],
    about: """
      Removes the keys. When the command returns, the removal survives power loss. The exit status
      is 1 if one of the keys was missing; the others are removed all the same.
      """,
    examples: ["cairn delete notes.cairn greeting token"])

  static let expire = CommandPage(
    "remove what has expired, or set when keys expire",
    operands: ["STORE", "[KEY...]"],
    about: """
      Without KEY, removes the keys that have expired, like cairn trim --expired, and says how much
      that was. No read finds them anyway, but they take space.

      With KEY and --lifetime, makes each key expire after this time from now, whether it would have
      expired sooner, later or never. Cost, idle limit and metadata stay. When the command returns,
      the change survives power loss. The exit status is 1 if one of the keys was missing; the
      others are changed all the same.
      """,
    options: [
      OptionUse(.lifetime, "how long the keys live from now on: \(lifetimes)"),
      OptionUse(
        .json,
        """
        print one object: "removed", "removedBytes" and "damaged", or with KEY "changed" and
        "missing"
        """),
    ],
    notes: """
      A longer life is a small record; a shorter one, or one for a key that never expired, writes
      the value again and gives it a new version. An entry that a cache wrote with tags can only
      live longer.
      """,
    examples: [
      "cairn expire sessions.cairn",
      "cairn expire sessions.cairn session/1 session/2 --lifetime 30m",
    ])

  static let keys = CommandPage(
    "list the keys",
    about: """
      Lists the keys in the order of their bytes, one on each line. A backslash is shown as \\\\. Bytes
      that are not UTF-8, and characters that a terminal would obey, are shown as \\xNN.
      """,
    options: [
      OptionUse(.prefix, "list only keys that begin with these bytes"),
      OptionUse(
        .limit,
        "list at most this many keys; with --tree, at most this many names in each folder"),
      OptionUse(
        .long,
        """
        show the bytes of the value, when it was written and when it expires (or -) before each
        key. A terminal gets columns under a header; otherwise tabs separate them
        """),
      OptionUse(
        .tree,
        """
        list keys as folders, as if / separated the names of a path; each folder shows how many
        keys it holds
        """),
      OptionUse(
        .json,
        """
        print an array of objects with "key" (or "keyBase64", if it is not UTF-8), "valueBytes",
        "written" and "expires" (or null)
        """),
    ],
    notes: "Times are in UTC.",
    examples: [
      "cairn keys photos.cairn --prefix 2024/",
      "cairn keys photos.cairn --tree --limit 5",
      "cairn keys photos.cairn --long | sort -n | tail",
    ])
}
