// The commands for one key, or a few.
extension CommandPage {
  static let put = CommandPage(
    "store a value, from the argument or standard input",
    operands: ["STORE", "KEY", "[VALUE]"],
    about: """
      Stores VALUE, or all of standard input, under KEY. When the command returns, the value
      survives a power cut. Creates STORE if it is missing.
      """,
    options: [
      OptionUse(.lifetime, "remove the key after this time"),
      OptionUse(.metadata, "store these bytes beside the value; cairn info shows them"),
      OptionUse(.ifAbsent, "leave a key that exists unchanged; the exit status is then 1"),
      .keyFormat, .wait,
      OptionUse(
        .json,
        """
        print one object with "key", "version", "valueBytes", "existed" (null if the entry was
        damaged) and "stored"
        """),
    ],
    notes: """
      KEY, VALUE and TEXT are bytes and need not be UTF-8. If one begins with a dash, write -- before
      it, or --metadata=TEXT.
      """,
    examples: [
      "cairn put notes.cairn greeting hello",
      "cairn put photos.cairn lake.jpg --metadata image/jpeg < lake.jpg",
      "cairn put notes.cairn token abc --lifetime 12h --if-absent",
    ])

  static let get = CommandPage(
    "write a value to standard output",
    operands: ["STORE", "KEY"],
    about: """
      Writes only the bytes of the value to standard output. The exit status is 1 if the key does
      not exist.

      To a terminal, it writes only plain text of at most 1 MiB, followed by a newline.
      """,
    options: [
      OptionUse(.counter, "print the number of a counter; see cairn help increment"),
      .keyFormat,
      OptionUse(
        .json,
        """
        print one object, as cairn dump does for each entry; with --counter, "key" and "number"
        """),
    ],
    examples: [
      "cairn get notes.cairn greeting", "cairn get photos.cairn lake.jpg > lake.jpg",
      "cairn get counters.cairn visits --counter",
    ])

  static let info = CommandPage(
    "show the attributes of a key: sizes, times, cost",
    operands: ["STORE", "KEY"],
    about: """
      Shows everything about a key except its value: the version (the sequence number of its last
      write), the size of the value, the metadata, the tags that a cache gave it, the times of
      writing, last access and expiry, the idle limit and the cost. A dash means none. The exit
      status is 1 if the key does not exist.

      The last access is accurate to 1 % of its age. Entries written since the last checkpoint
      count as accessed when the store is opened. While another process has the store open, only
      that process knows the last access.

      Times are in UTC. The value is not read; cairn get and cairn verify find damage in it.
      """,
    options: [
      .keyFormat,
      OptionUse(
        .json,
        """
        print one object with "key", "version", "valueBytes", "metadata", "written", "accessed",
        "expires", "idleLimitSeconds", "cost" and "tags"; see cairn help dump
        """),
    ],
    examples: ["cairn info notes.cairn greeting"])

  static let delete = CommandPage(
    "remove keys",
    operands: ["STORE", "KEY..."],
    about: """
      Removes the keys. When the command returns, the removal survives a power cut. The exit status
      is 1 if a key was missing; the other keys are removed anyway.
      """,
    options: [
      .keyFormat, .wait,
      OptionUse(
        .json,
        """
        print one object per key, with "key", "version" and "valueBytes" (of the removed value, or
        null) and "existed"
        """),
    ],
    examples: ["cairn delete notes.cairn greeting token"])

  static let increment = CommandPage(
    "add to a counter, and print it",
    operands: ["STORE", "KEY", "[N]"],
    about: """
      Adds N, or 1, to a counter, and prints the new number. When the command returns, it survives a
      power cut. Creates STORE if it is missing. A missing key counts as 0. To subtract, write --
      before a negative N.

      A counter is a value of 8 bytes, a signed, little-endian integer, as the library has it. Its
      expiry, idle limit, cost and metadata stay. cairn get --counter prints the number without
      changing it.
      """,
    options: [
      OptionUse(.lifetime, "remove a new counter after this time"),
      .keyFormat, .wait, OptionUse(.json, #"print one object with "key" and "number""#),
    ],
    examples: [
      "cairn increment counters.cairn visits", "cairn increment counters.cairn stock -- -3",
    ])

  static let expire = CommandPage(
    "set when keys expire",
    operands: ["STORE", "KEY..."],
    about: """
      Makes each key expire after this time from now, whether it would have expired sooner, later or
      never. Cost, idle limit and metadata stay. When the command returns, the change survives a
      power cut. The exit status is 1 if a key was missing; the other keys are changed anyway.
      """,
    options: [
      OptionUse(.lifetime, "how long the keys live from now"),
      .keyFormat, .wait, OptionUse(.json, #"print one object with "changed" and "missing""#),
    ],
    alternativeCount: 1,
    notes: """
      A new lifetime writes the value again and gives it a new version. An entry with tags must
      wait until the cache that wrote it has finished the removal of a tag. cairn trim --expired
      removes expired keys.
      """,
    examples: ["cairn expire sessions.cairn session/1 session/2 --lifetime 30m"])

  static let keys = CommandPage(
    "list the keys",
    about: """
      Lists the keys in byte order, one per line. A backslash is shown as \\\\. Bytes that are not
      UTF-8, and control characters, are shown as \\xNN. Every command reads this form with
      --key-format escaped.
      """,
    options: [
      OptionUse(.prefix, "list only keys that begin with these bytes"),
      OptionUse(
        .limit,
        "list at most this many keys; with --tree, at most this many names in each folder"),
      OptionUse(
        .long,
        """
        show the value's size, time of writing and expiry (or -) before each key. A terminal gets
        columns under a header; otherwise tabs separate the columns
        """),
      OptionUse(
        .tree,
        """
        list keys as folders, with / as the separator; each folder shows its number of keys
        """),
      .keyFormat,
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
