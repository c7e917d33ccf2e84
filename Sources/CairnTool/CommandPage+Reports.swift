// The commands that look at a whole store.
extension CommandPage {
  static let stats = CommandPage(
    "show the state of the store, and what to do about it",
    about: """
      Shows what the store holds and takes, how it was opened, the segments with the most dead
      bytes, and what to do if something is worth doing. It reads no values; cairn verify does.

        live         the newest value of each key, with its key and times
        dead         what was replaced or removed, until it is compacted
        spare        space in the segments for future writes
        other        checkpoints, the manifest, the reserve for a full disk, and the directory
        on disk      all files of the store, as du counts them
        tombstones   records of removals
      """,
    options: [
      OptionUse(
        .histograms,
        """
        also show how large the values are, and how long ago they were written. This reads the head
        of every record, but no values; the rest of stats reads neither
        """),
      OptionUse(
        .json,
        """
        print one object with "keys", "liveBytes", "deadBytes", "allocatedBytes" (of segments),
        "otherBytes", "onDiskBytes", "segments", "segmentList", "tombstones", "pinnedBytes",
        "indexBytes", "cairnVersion", "formatVersion" and "recovery"; the list has objects with
        "id", "liveBytes", "deadBytes", "tombstones", "bytes", "allocatedBytes" and "sealed".
        --histograms adds "valueSizes" and "ages", lists of objects with "keys" and "below", which
        is in bytes or seconds and null in the last
        """),
    ],
    examples: ["cairn stats photos.cairn", "cairn stats photos.cairn --histograms"])

  static let top = CommandPage(
    "show the store as it changes, each second",
    about: """
      Shows what the store holds and what is written to it, again each second, until Ctrl-C. Another
      program may have it open, and is not slowed down. A terminal shows a page with a bar for each
      segment, the newest first: # is live, - is dead, and the longest bar is the longest segment.
      Otherwise, each sample is a line.

        writes       writes and removals a second, since the last sample
        log          all segments together
        checkpoint   the age of the newest; after a crash, an open reads what came since
      """,
    options: [
      OptionUse(
        .interval, "the time between two samples: seconds, which may have decimals, or 1m"),
      OptionUse(.count, "end after this many samples"),
      OptionUse(
        .json,
        """
        print one object a line, with "time", "keys", "liveBytes", "deadBytes", "logBytes",
        "onDiskBytes", "lastVersion", "writesPerSecond" (null in the first), "checkpointAgeSeconds"
        (or null), "processID" (of the program that has it open, or null) and "segmentList", objects
        with "id", "liveBytes", "deadBytes", "bytes" and "sealed"
        """),
    ],
    examples: ["cairn top sessions.cairn", "cairn top sessions.cairn --json >> sessions.log"])

  static let verify = CommandPage(
    "check every byte of every file",
    about: """
      Reads and checks every byte of every file of the store, and compares the checkpoint with the
      records. The exit status is 3 if something is damaged. Names the first 20 damaged places by
      file and offset, and by the key if a value is damaged.
      """,
    options: [
      OptionUse(
        .json,
        """
        print one object with "records", "bytes", "tornBytes" and "errors"; this lists every place
        with "file", "offset", "cause" (a name such as badValue) and "key" (null if it is unknown,
        "keyBase64" if it is not UTF-8)
        """)
    ],
    examples: ["cairn verify photos.cairn"])

  static let scrub = CommandPage(
    "check every live value, as slowly as you like",
    about: """
      Reads the log once and checks every record and every value that a read would find. Unlike
      cairn verify, it leaves out what was replaced or removed, and it can be slow, so that others
      can use the disk. The exit status is 3 if something is damaged. Names the first 20 damaged
      places by file and offset, and by their keys as far as they are known.

      A program that has the store open scrubs by itself if its configuration says so.
      """,
    options: [
      OptionUse(.rate, "read this many bytes a second, on average: a number, or 500K, 10M"),
      OptionUse(
        .json,
        """
        print one object with "records", "bytes" and "damage"; each damaged place has "file",
        "offset", "cause" (a name such as badValue), "keyCount" (how many keys are lost) and
        "keys", objects with "key" (or "keyBase64", if it is not UTF-8)
        """),
    ],
    examples: ["cairn scrub photos.cairn --rate 10M"])

  static let completions = CommandPage(
    "print completions for a shell",
    operands: [Completions.Shell.allCases.map(\.rawValue).joined(separator: "|")],
    about: """
      Prints a script that completes commands, options and paths for a shell. Install it as below,
      and start a new shell. For zsh, the folder must be in fpath, before compinit.
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
      Shows the version of the library and the command, the format of the files that they write, and
      the formats that they read. cairn --version shows the version alone.
      """,
    options: [
      OptionUse(.json, #"print one object with "version", "writesFormat" and "readsFormats""#)
    ],
    examples: ["cairn version"])

  static let help = CommandPage(
    "explain a command, with examples",
    operands: ["[COMMAND]"],
    about: "Explains a command, or lists them all.",
    options: [OptionUse(.man, "print the manual page of cairn, for man")],
    examples: [
      "cairn help trim", "cairn help --man > ~/.local/share/man/man1/cairn.1",
    ])
}
