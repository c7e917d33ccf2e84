/// The state of a `MemoryModel`.
struct MemoryMachine {
  typealias Order = MemoryModel.Order
  /// For each word, the index of the newest message that is seen. For each thread, how many of its
  /// numbered uses are seen.
  typealias View = [Int]

  /// A value that was stored in a word. The messages of a word are in modification order.
  struct Message {
    var value: Int
    /// What a thread that acquires the message sees.
    var view: View
    /// Whether no message can come between this one and the one before: this one updated that.
    var isUpdate: Bool
  }

  struct ThreadState {
    var step = 0
    var registers: [Int]
    var view: View
    /// What an acquire fence would let the thread see.
    var acquirable: View
    /// What the thread saw at its last release fence.
    var released: View
    /// The threads that have yet to execute a fence for this one.
    var awaited: Set<Int> = []
    var hasEnded = false
  }

  /// The uses of data that is not atomic, by their numbers (as in FastTrack: Flanagan and Freund,
  /// 2009).
  struct Uses {
    var writer = 0
    var write = 0
    var reads: [Int]
    var isFree = false
  }

  /// A sequentially consistent access, at its place in the order of all of them.
  struct Access {
    var thread: Int
    var number: Int
    var word: Int
    var isStore: Bool
    var index: Int
  }

  var words: [[Message]]
  var threads: [ThreadState]
  var data: [Uses]
  /// What the sequentially consistent fences so far have seen.
  var fenced: View
  var accesses: [Access] = []
  /// The newest store of the accesses that all threads know, by word.
  var floors: [Int]

  init(_ model: MemoryModel) {
    let view = View(repeating: 0, count: model.words.count + model.threads.count)
    words = model.words.map { [Message(value: $0.value, view: view, isUpdate: false)] }
    let registers = [Int](repeating: 0, count: model.registerCount)
    threads = model.threads.map { _ in
      ThreadState(registers: registers, view: view, acquirable: view, released: view)
    }
    data = model.data.map { _ in Uses(reads: model.threads.map { _ in 0 }) }
    fenced = view
    floors = words.map { _ in 0 }
  }

  static func join(_ view: inout View, _ other: View) {
    for index in view.indices where view[index] < other[index] { view[index] = other[index] }
  }

  /// The number of the thread's next numbered use.
  mutating func number(_ thread: Int) -> Int {
    let number = threads[thread].view[words.count + thread] + 1
    threads[thread].view[words.count + thread] = number
    threads[thread].acquirable[words.count + thread] = number
    return number
  }

  // MARK: Words

  /// The messages that the thread may load.
  func readable(_ word: Int, _ thread: Int) -> Range<Int> {
    threads[thread].view[word]..<words[word].count
  }

  mutating func read(_ index: Int, of word: Int, _ order: Order, _ thread: Int) {
    let message = words[word][index]
    threads[thread].view[word] = index
    threads[thread].acquirable[word] = max(index, threads[thread].acquirable[word])
    Self.join(&threads[thread].acquirable, message.view)
    if order.acquires { Self.join(&threads[thread].view, message.view) }
  }

  /// Where the thread's next store may come in the modification order.
  func places(_ word: Int, _ thread: Int) -> [Int] {
    (threads[thread].view[word] + 1...words[word].count).filter { isFree($0, word) }
  }

  func isFree(_ place: Int, _ word: Int) -> Bool {
    place == words[word].count || !words[word][place].isUpdate
  }

  mutating func store(
    _ value: Int, in word: Int, at place: Int, _ order: Order, _ thread: Int, updates: Bool = false
  ) {
    if place < words[word].count { makeRoom(at: place, in: word) }
    threads[thread].view[word] = place
    threads[thread].acquirable[word] = max(place, threads[thread].acquirable[word])
    var view = order.releases ? threads[thread].view : threads[thread].released
    // A read-modify-write continues the release sequence of the message that it replaces.
    if updates { Self.join(&view, words[word][place - 1].view) }
    view[word] = place
    words[word].insert(Message(value: value, view: view, isUpdate: updates), at: place)
  }

  private mutating func makeRoom(at place: Int, in word: Int) {
    changeViews { if $0[word] >= place { $0[word] += 1 } }
    for index in accesses.indices
    where accesses[index].word == word && accesses[index].index >= place {
      accesses[index].index += 1
    }
    if floors[word] >= place { floors[word] += 1 }
  }

  private mutating func changeViews(_ body: (inout View) -> Void) {
    for thread in threads.indices {
      body(&threads[thread].view)
      body(&threads[thread].acquirable)
      body(&threads[thread].released)
    }
    for word in words.indices {
      for index in words[word].indices { body(&words[word][index].view) }
    }
    body(&fenced)
  }

  /// - Parameter synchronizes: whether it orders uses of data as well. Fences of C++20 do so only with
  /// a word that passes from one thread to the other.
  mutating func fence(_ order: Order, _ thread: Int, synchronizes: Bool = false) {
    if order.acquires { threads[thread].view = threads[thread].acquirable }
    if order == .sequential {
      for index in synchronizes ? fenced.indices : words.indices {
        fenced[index] = max(fenced[index], threads[thread].view[index])
        threads[thread].view[index] = fenced[index]
      }
      threads[thread].acquirable = threads[thread].view
    }
    if order.releases { threads[thread].released = threads[thread].view }
  }

  // MARK: Sequentially consistent accesses

  /// Every state in which an access that the thread has just made has a place in the order of all
  /// such accesses: after what happened before it, and not against the modification order.
  func ordered(_ number: Int, _ word: Int, isStore: Bool, _ thread: Int) -> [MemoryMachine] {
    let index = threads[thread].view[word]
    if isStore ? index <= floors[word] : index < floors[word] { return [] }
    let access = Access(
      thread: thread, number: number, word: word, isStore: isStore, index: index)
    return (known(thread)...accesses.count).compactMap { place in
      for (other, its) in accesses.enumerated() where its.word == word {
        let isBefore = other < place
        if its.isStore, isBefore, isStore ? its.index >= index : its.index > index { return nil }
        if isStore, !isBefore, its.index < index { return nil }
      }
      var machine = self
      machine.accesses.insert(access, at: place)
      return machine
    }
  }

  /// How many accesses at the beginning of the order lie before the thread's next one.
  private func known(_ thread: Int) -> Int {
    let view = threads[thread].view
    let last = accesses.lastIndex { $0.number <= view[words.count + $0.thread] }
    return last.map { $0 + 1 } ?? 0
  }

  // MARK: Data

  /// Returns what is wrong with a use, if anything.
  mutating func use(_ index: Int, _ use: MemoryModel.Use, _ thread: Int) -> String? {
    let uses = data[index]
    if uses.isFree { return "it is free" }
    func isSeen(_ number: Int, by other: Int) -> Bool {
      number <= threads[thread].view[words.count + other]
    }
    let isOrdered =
      isSeen(uses.write, by: uses.writer)
      && (use == .read || uses.reads.indices.allSatisfy { isSeen(uses.reads[$0], by: $0) })
    let number = number(thread)
    if use == .read {
      data[index].reads[thread] = number
    } else {
      data[index].writer = thread
      data[index].write = number
      data[index].isFree = use == .free
    }
    return isOrdered ? nil : "another use is not ordered with it"
  }

  // MARK: One state, one form

  /// Forgets what no thread can load any more, so that equal states compare as equal.
  mutating func trim() {
    let live = threads.indices.filter { !threads[$0].hasEnded }
    var oldest = View(repeating: 0, count: fenced.count)
    for word in words.indices {
      oldest[word] = words[word].count - 1
      for thread in live { oldest[word] = min(oldest[word], threads[thread].view[word]) }
      words[word][oldest[word]].isUpdate = false
      words[word].removeFirst(oldest[word])
      floors[word] = max(0, floors[word] - oldest[word])
    }
    if oldest.contains(where: { $0 > 0 }) {
      changeViews { view in
        for word in oldest.indices where oldest[word] > 0 {
          view[word] = max(0, view[word] - oldest[word])
        }
      }
      for index in accesses.indices {
        accesses[index].index = max(0, accesses[index].index - oldest[accesses[index].word])
      }
    }
    if accesses.isEmpty { return }
    let settled = live.map { known($0) }.min() ?? accesses.count
    for access in accesses.prefix(settled) where access.isStore {
      floors[access.word] = max(floors[access.word], access.index)
    }
    accesses.removeFirst(settled)
  }

  /// The whole state as numbers: faster to compare than the state itself.
  var numbers: [Int] {
    var numbers = fenced + floors
    for messages in words {
      numbers.append(messages.count)
      for message in messages {
        numbers.append(message.value << 1 | (message.isUpdate ? 1 : 0))
        numbers += message.view
      }
    }
    for thread in threads {
      numbers.append(thread.step)
      numbers.append(thread.awaited.reduce(0) { $0 | 1 << $1 })
      numbers += thread.registers
      numbers += thread.view
      numbers += thread.acquirable
      numbers += thread.released
    }
    for uses in data {
      numbers += [uses.writer, uses.write, uses.isFree ? 1 : 0]
      numbers += uses.reads
    }
    for access in accesses {
      numbers += [
        access.thread, access.number, access.word, access.isStore ? 1 : 0, access.index,
      ]
    }
    return numbers
  }
}
