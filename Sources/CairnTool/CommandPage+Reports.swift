// The commands that inspect a whole store.
extension CommandPage {
  static let stats = CommandPage(
    "show the state of the store, with advice",
    about: """
      Shows the store's contents and disk space, how it was last opened, the segments with the most
      dead bytes, and advice if action is worthwhile. If another process has the store open, says so
      instead of how it was opened. It does not read values; cairn verify does.

        live         the newest value of each key, with its key and times
        dead         replaced or removed data, until it is compacted
        spare        space in the segments for future writes
        other        checkpoints, the manifest, the reserve for a full disk, and the directory
        on disk      all files of the store, as du counts them
        tombstones   records of removals
      """,
    options: [
      OptionUse(
        .histograms,
        """
        also show the sizes and ages of the values. This reads the head of every record, but no
        values; the rest of stats reads neither
        """),
      OptionUse(
        .json,
        """
        print one object with "keys", "liveBytes", "deadBytes", "excessBytes" (dead beyond the space
        bound, or kept because of damage), "allocatedBytes" (of segments), "otherBytes",
        "onDiskBytes", "segments", "segmentList", "tombstones", "pinnedBytes", "indexBytes",
        "cairnVersion", "formatVersion" and "recovery"; the list has objects with "id", "liveBytes",
        "deadBytes", "tombstones", "bytes", "allocatedBytes" and "sealed".
        --histograms adds "valueSizes" and "ages", lists of objects with "keys" and "below", which
        is in bytes or seconds and null in the last
        """),
    ],
    examples: ["cairn stats photos.cairn", "cairn stats photos.cairn --histograms"])

  static let top = CommandPage(
    "show the store as it changes, every second",
    about: """
      Shows the store's contents and write rate every second, until Ctrl-C. Another program may have
      the store open, and is not slowed down. A terminal shows a page with a bar for each segment,
      the newest first: # is live, - is dead, and the longest bar is the longest segment. Otherwise,
      each sample is one line.

        writes       writes and removals per second, since the last sample
        log          all segments together
        checkpoint   the age of the newest checkpoint; after a crash, an open reads later records
      """,
    options: [
      OptionUse(.interval, "the time between two samples"),
      OptionUse(.count, "end after this many samples"),
      OptionUse(
        .json,
        """
        print one object per line, with "time", "keys", "liveBytes", "deadBytes", "logBytes",
        "onDiskBytes", "lastVersion", "writesPerSecond" (null in the first), "checkpointAgeSeconds"
        (or null), "processID" (of the program that has it open, or null) and "segmentList", a list
        of objects with "id", "liveBytes", "deadBytes", "bytes" and "sealed"
        """),
    ],
    examples: ["cairn top sessions.cairn", "cairn top sessions.cairn --json >> sessions.log"])

  static let verify = CommandPage(
    "check every byte of every file",
    about: """
      Reads and checks every byte of every file of the store, and compares the checkpoint with the
      records. The exit status is 3 if it finds damage. Names the first 20 damaged places by file
      and offset, and by keys if known. Writes nothing.

      While another program has the store open, it checks the log: every record, and every value
      that a read would find, but no replaced or removed values, and neither the checkpoint nor the
      manifest. Such a program scrubs by itself if its configuration says so.
      """,
    options: [
      OptionUse(
        .rate,
        """
        read this many bytes per second, on average, to leave the disk to other programs. The
        command pauses after each file
        """),
      OptionUse(
        .json,
        """
        print one object with "records", "bytes", "tornBytes" and "damage", a list of all damaged
        places with "file", "offset", "cause" (a name such as badValue), "keyCount" (how many keys
        need the place: 0 if they were rewritten or removed since, null if it is unknown) and
        "keys", objects with "key" (or "keyBase64", if it is not UTF-8)
        """),
    ],
    examples: ["cairn verify photos.cairn", "cairn verify photos.cairn --rate 10M"])

  static let completions = CommandPage(
    "print completions for a shell",
    operands: [Completions.Shell.allCases.map(\.rawValue).joined(separator: "|")],
    about: """
      Prints a script that completes commands, options and paths in a shell. Install it as shown
      below, and start a new shell. For zsh, the folder must be in fpath before compinit runs.
      """,
    examples: [
      "cairn completions bash > ~/.local/share/bash-completion/completions/cairn",
      "cairn completions zsh > ~/.zfunc/_cairn",
      "cairn completions fish > ~/.config/fish/completions/cairn.fish",
    ])

  static let version = CommandPage(
    "show the version, and the file formats it reads and writes",
    operands: [],
    about: """
      Shows the version of the library and the command, the file format that they write, and the
      formats that they read. cairn --version shows only the version.
      """,
    options: [
      OptionUse(.json, #"print one object with "version", "writesFormat" and "readsFormats""#)
    ],
    examples: ["cairn version"])

  static let help = CommandPage(
    "explain a command, with examples",
    operands: ["[COMMAND]"],
    about: "Explains a command, or lists all commands.",
    options: [OptionUse(.man, "print the manual page of cairn, for man")],
    examples: [
      "cairn help trim", "cairn help --man > ~/.local/share/man/man1/cairn.1",
    ])
}
