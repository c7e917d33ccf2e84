import CommandText

/// The output of `cairn help`.
enum Help {
  static let overview = Paragraphs(
    """
    usage: cairn COMMAND STORE [ARGUMENT...] [OPTION...]

      put STORE KEY [VALUE]       store a value, from the argument or standard input
      get STORE KEY               write a value to standard output
      info STORE KEY              show what is known of a key: sizes, times, cost
      delete STORE KEY...         remove keys
      keys STORE                  list the keys
      stats STORE                 show the state of the store, and what to do about it
      top STORE                   show the store as it changes, each second
      verify STORE                check every byte of every file
      scrub STORE                 check every live value, as slowly as you like
      salvage STORE DESTINATION   copy what is sound in a damaged store into a new one
      trim STORE                  remove keys by count, size, age or expiry
      compact STORE               give back the space of what was removed or replaced
      backup STORE DESTINATION    copy a store into a new one, and check the copy
      import STORE DIRECTORY      store the files of a tree
      export STORE DIRECTORY      write the values as the files of a new tree
      help [COMMAND]              explain a command, with examples

    A first try:

      $ cairn put notes.cairn greeting hello
      $ cairn get notes.cairn greeting
      $ cairn stats notes.cairn

    STORE is a directory; put and import make it if it is not there. get, info, keys, stats, top,
    verify, scrub, salvage, backup and export write nothing to it; all of these but salvage work while another
    program has it open, and say so. Options may stand anywhere; -- ends them.
    --json has every report as JSON, for programs. What takes long says on a terminal how far it
    is. cairn --version tells the version.

    Results are written to standard output, all else to standard error. The exit status is:

      0     done
      1     there is no such key
      2     the command line is wrong
      3     the store is damaged
      4     another program has the store open
      5     any other error
      130   ended by Ctrl-C; other signals have other numbers above 128, as shells have it
    """)

  static func page(for command: Command) -> Paragraphs { Paragraphs(text(for: command)) }

  /// The synopsis of a command: the first paragraph of its page, on one line.
  static func usage(of command: Command) -> String {
    let text = text(for: command)
    let paragraph = text[..<(text.firstRange(of: "\n\n")?.lowerBound ?? text.endIndex)]
    return String(paragraph.replacing("\n", with: " "))
  }

  private static func text(for command: Command) -> String {
    switch command {
    case .put: putText
    case .get: getText
    case .info: infoText
    case .delete: deleteText
    case .keys: keysText
    case .stats: statsText
    case .top: topText
    case .verify: verifyText
    case .scrub: scrubText
    case .salvage: salvageText
    case .trim: trimText
    case .compact: compactText
    case .backup: backupText
    case .import: importText
    case .export: exportText
    case .help:
      """
      usage: cairn help [COMMAND]

      Explains a command, or lists them all.

        $ cairn help trim
      """
    }
  }

  private static let putText = """
    usage: cairn put STORE KEY [VALUE] [--ttl TIME]

    Stores VALUE, or what standard input holds up to its end, under KEY. When the command
    returns, the value survives power loss. STORE is made if it is not there.

      --ttl TIME   the key is gone after so long: seconds, which may have decimals, or 15m, 12h,
                   7d, 2w

    KEY and VALUE are bytes and need not be UTF-8. Before one that begins with a dash, put --.

      $ cairn put notes.cairn greeting hello
      $ cairn put photos.cairn lake.jpg < lake.jpg
      $ cairn put notes.cairn token abc --ttl 12h
    """

  private static let getText = """
    usage: cairn get STORE KEY

    Writes the bytes of the value to standard output, and nothing else. The exit status is 1
    if there is no such key.

    A terminal gets the value only if it is text that it shows as it is, of at most 1 MiB, and a
    newline after it.

      $ cairn get notes.cairn greeting
      $ cairn get photos.cairn lake.jpg > lake.jpg
    """

  private static let infoText = """
    usage: cairn info STORE KEY [--json]

    Shows what the store knows of a key besides its value: the version, which is the number of the
    write that made it; bytes of the value and of the metadata beside it; when it was written, when
    it was last read or written, and when it expires; how long it may go without that; its cost. A
    dash stands for what it does not have. The exit status is 1 if there is no such key.

    The last access is known to within 1 % of how long ago it is. What was written since the last
    checkpoint, which a program makes that has the store open for a while, counts as accessed when
    the store is opened.

    Times are in UTC. The value is not read: cairn get and cairn verify find damage in it.

      --json   one object with "key" (or "keyBase64", where it is not UTF-8), "version",
               "valueBytes", "metadataBytes", "written", "accessed", "expires",
               "idleLimitMilliseconds" and "cost", the last three null where there is none

      $ cairn info notes.cairn greeting
    """

  private static let deleteText = """
    usage: cairn delete STORE KEY...

    Removes the keys. When the command returns, the removal survives power loss. The exit
    status is 1 if one of the keys was not there; the others are removed all the same.

      $ cairn delete notes.cairn greeting token
    """

  private static let keysText = """
    usage: cairn keys STORE [--prefix P] [--long] [--json]

    Lists the keys in the order of their bytes, one on each line. A backslash is shown as \\\\,
    and the bytes of characters that a terminal may obey, or of what is not UTF-8, as \\xNN.

      --prefix P   only keys that begin with these bytes
      --long       before each key and tabs: bytes of the value, when it was written, when it
                   expires (or -)
      --json       an array of objects with "key", "valueBytes", "written" and "expires" (or
                   null); a key that is not UTF-8 is "keyBase64" instead of "key"

    Times are in UTC.

      $ cairn keys photos.cairn --prefix 2024/
      $ cairn keys photos.cairn --long | sort -n | tail
    """

  private static let statsText = """
    usage: cairn stats STORE [--json]

    Shows what the store holds and takes, how it was opened, the segments with the most dead
    bytes, and what to do where something is worth doing. It reads no values: cairn verify does.

      live         the newest value of each key, with key and times
      dead         what was replaced or removed, until it is compacted
      spare        space in the segments for what is written next
      other        checkpoints, the manifest, the reserve for a full disk, and the directory
      on disk      all files of the store, as du counts them
      tombstones   records of removals

      --json   one object with "keys", "liveBytes", "deadBytes", "allocatedBytes" (of
               segments), "otherBytes", "onDiskBytes", "segments", "segmentList", "tombstones", "pinnedBytes", "indexBytes", "formatVersion" and "recovery"; in the list, objects with "id", "liveBytes", "deadBytes",
               "tombstones", "bytes", "allocatedBytes" and "sealed"

      $ cairn stats photos.cairn
    """

  private static let topText = """
    usage: cairn top STORE [--interval TIME] [--count N] [--json]

    Shows what the store holds and what is written to it, again each second, until Ctrl-C. Another
    program may have it open, and is not held up. On a terminal it is a page, with a bar for each
    segment, the newest first: # is live, - is dead, and the longest bar is the longest segment.
    Elsewhere it is a line each time.

      writes       writes and removals a second, since the page before
      log          all segments together
      checkpoint   how long ago the newest was written; after a crash, an open reads what came since

      --interval TIME   how long between two pages: seconds, which may have decimals, or 1m
      --count N         end after N pages
      --json            one object a line, with "time", "keys", "liveBytes", "deadBytes", "logBytes",
                        "onDiskBytes", "lastVersion", "writesPerSecond" (null in the first),
                        "checkpointAgeSeconds" (or null), "processID" (of who has it open, or null)
                        and "segmentList", objects with "id", "liveBytes", "deadBytes", "bytes" and
                        "sealed"

      $ cairn top sessions.cairn
      $ cairn top sessions.cairn --json >> sessions.log
    """

  private static let verifyText = """
    usage: cairn verify STORE [--json]

    Reads every byte of every file of the store, checks it, and compares the checkpoint with the
    records. The exit status is 3 if something is damaged; each place is named by file and offset, and by the key where a value is
    damaged, the first 20 of them.

      --json   one object with "records", "bytes", "tornBytes" and "errors", each of these, and
               all of them, with "file", "offset", "cause", a name such as badValue, and "key"
               (null where it is not known, "keyBase64" where it is not UTF-8)

      $ cairn verify photos.cairn
    """

  private static let scrubText = """
    usage: cairn scrub STORE [--rate SIZE] [--json]

    Reads the log once and checks every record and every value that a read would find. Unlike
    cairn verify, it leaves out what was replaced or removed, and it can be slow, so that others
    get on with the disk. The exit status is 3 if something is damaged; each place is named by
    file and offset, and by its keys as far as they can be told, the first 20 of them.

    A program that has the store open scrubs by itself if its configuration says so.

      --rate SIZE   so many bytes a second, on average: a number of bytes, or 500K, 10M
      --json        one object with "records", "bytes" and "damage"; each place of damage with
                    "file", "offset", "cause", a name such as badValue, "keyCount", which is how
                    many keys it costs, and "keys", objects with "key" (or "keyBase64", where it
                    is not UTF-8)

      $ cairn scrub photos.cairn --rate 10M
    """

  private static let salvageText = """
    usage: cairn salvage STORE DESTINATION [--json]

    Copies every entry whose newest record is sound into a new store at DESTINATION, where
    nothing or an empty directory must be. STORE is not changed; it may lack its manifest or
    any other file. A key whose newest record is damaged is left out: an older value is not put
    in its place. Every place that is lost is named by file and offset, and by the key where that
    is known.

    A record that is lost with its key may have been a newer value of a key, or its removal. So
    an older value may be back, and the command warns of it. When the command returns, the copy
    survives power loss. Ctrl-C removes it.

    The exit status is 0 if everything was copied. It is 3 if something was lost, the manifest
    could not be used or does not know a segment, or the log ends with torn bytes: those are
    most often of a write that a crash cut short, but damage to the last write looks the same.
    The copy is then complete but for that.

      --json   one object with "entries", "bytes", "lostKeys", "lostBytes", "lostPlaces",
               "tornBytes", "manifest" (used, missing or damaged), "complete", "losses", each of
               these with "file", "offset", "end", "cause" and "key" (or "keyBase64", or null), and
               "warnings"; causes and warnings by names such as badValue and versionsChanged

      $ cairn salvage photos.cairn rescued.cairn
    """

  private static let trimText = """
    usage: cairn trim STORE (--count N | --bytes SIZE | --older-than TIME | --expired)
    [--order lru|largest] [--json]

    Removes keys. When the command returns, the removals survive power loss. The space on disk is
    given back by and by while the store is in use, or by cairn compact (cairn help compact says
    what holds on a full disk).

      --count N           until at most N keys are left
      --bytes SIZE        until the live bytes are at most SIZE; cairn stats shows how many there
                          are. A number of bytes, or 500K, 10M, 2G
      --older-than TIME   those written longer ago than that: seconds, or 15m, 12h, 7d, 2w
      --expired           those that have expired; with --count and --bytes they go first
      --order lru         with --count and --bytes, those read or written longest ago go first, as
                          in the library; it is so without --order too
      --order largest     those that take the most bytes go first
      --json              one object with "removed", "removedBytes" and "damaged"

    When a value was read is known as far as a checkpoint has kept it. cairn get leaves no trace, and
    what short sessions of a program read may be forgotten for up to an hour; the order is then that
    of writing.

    A key whose record is damaged stays; the exit status is then 3.

      $ cairn trim photos.cairn --count 5000
      $ cairn trim photos.cairn --bytes 10G --order largest
      $ cairn trim photos.cairn --older-than 30d
    """

  private static let compactText = """
    usage: cairn compact STORE [--json]

    Writes what is live in files with dead records anew and removes the old files, so that the
    space of what was removed or replaced is given back. It needs some free space, about as much
    as one segment takes. It may be broken off at any time.

      --json   one object with "bytesBefore" and "bytesAfter" (what the store takes on disk, as
               cairn stats has it), "removedSegments", "writtenSegments", "copiedRecords",
               "droppedTombstones" and "unreadableSegments"

    A file with dead records that is damaged stays as it is; the exit status is then 3.

    On a full disk it makes do with the file RESERVE. Live values that are large beside that may
    keep their file from being given back then: trim until none of them is left in it, make room
    elsewhere, or put what cairn salvage copies to another disk in the place of the store.

      $ cairn compact photos.cairn
    """

  private static let backupText = """
    usage: cairn backup STORE DESTINATION [--json]

    Copies STORE into a new store at DESTINATION, where nothing or an empty directory must be, and
    reads every byte of the copy again before it becomes a store. Blocks are shared where the
    filesystem can. A program that has STORE open can make a backup itself, while it writes.
    Ctrl-C removes the copy.

      --json   one object with "entries", "segments", "bytes", "version" and "damagedValues"

    A value that is damaged in STORE is so in the copy; the exit status is then 3. Where more than
    values is damaged there is no copy: see cairn salvage.

      $ cairn backup photos.cairn /backup/photos.cairn
    """

  private static let importText = """
    usage: cairn import STORE DIRECTORY [--decode percent|none] [--ttl TIME] [--json]

    Stores every file below DIRECTORY: the key is its path relative to DIRECTORY, the value its
    contents. An empty directory is stored as a key that ends in / and has an empty value.
    STORE is made if it is not there; its own directory is left out.

    Symbolic links are not followed; they, and pipes, sockets and devices, are skipped and
    counted. A file that cannot be read is reported and the others go on; the exit status is
    then 5. Files whose value is already there are not written again, so an import that was
    cut short, as by Ctrl-C, is completed by running it once more. Nothing is removed from the
    store.

    A value counts as written when it is imported: when files were changed is not kept, so cairn
    trim --older-than counts from the import.

      --decode percent   percent-decode the names, as the caches TMCache and PINCache write them;
                         a percent sign without two hexadecimal digits stands for itself
      --decode none      take every path as it is
      --ttl TIME         the keys are gone after so long: seconds, or 15m, 12h, 7d, 2w; every file
                         is then stored, also where its value is already there
      --json             one object that says what was done

    Without --decode, files that `cairn export` put into .cairn-encoded get their keys back.

      $ cairn import photos.cairn ~/photos
      $ cairn import cache.cairn /tmp/pages --ttl 7d
    """

  private static let exportText = """
    usage: cairn export STORE DIRECTORY [--json]

    Writes every value to a file of its own below DIRECTORY, which must be empty or not exist.
    A key that is a relative path names its file. A key that ends in / and has an empty value
    becomes an empty directory.

    Keys that cannot be such a path are encoded: those with an empty name, a name . or .. or a
    name of more than 255 bytes, with a zero byte, or with a value although they end in /; those
    that begin with .cairn-encoded; and those whose file would stand where another key needs a
    directory, as a beside a/b. Their files lie in DIRECTORY/.cairn-encoded. Each is named by its
    key with every byte but letters, digits, - and _ as %NN, cut into names of 200 bytes, of
    which all but the last end in +. No two keys can have one path, and `cairn import` gives back
    the same keys.

    Expired keys are left out, and so is what stands beside the values: lifetimes, costs and
    metadata. `cairn backup` copies all of it. A damaged value is reported and the others go on;
    the exit status is then 3.

      --json   one object that says what was done

      $ cairn export photos.cairn ~/copy
    """
}
