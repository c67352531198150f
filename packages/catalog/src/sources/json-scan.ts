import { ThvError } from '@thv/kernel/errors'

/*
 * Finds where values begin and end in JSON that is too large, or too valuable, to be parsed and written again: whoever cuts the bytes of
 * a value keeps its own order of members, its numbers and everything it does not know. Brackets, strings and separators are checked here;
 * what stands between them is for the parser that gets the piece. Nothing recurses.
 */

/** Half open, of bytes. */
export interface Span {
  readonly start: number
  readonly end: number
}

export interface MemberSpan extends Span {
  readonly name: string
}

const TAB = 0x09
const LF = 0x0a
const CR = 0x0d
const SPACE = 0x20
const QUOTE = 0x22
const COMMA = 0x2c
const COLON = 0x3a
const OPEN_LIST = 0x5b
const BACKSLASH = 0x5c
const CLOSE_LIST = 0x5d
const OPEN_OBJECT = 0x7b
const CLOSE_OBJECT = 0x7d

/** Where one bracket per level is remembered; nobody means more. */
const MAX_DEPTH = 1_000_000

export function isObjectAt(bytes: Buffer, at: number): boolean {
  return bytes[at] === OPEN_OBJECT
}

export function isListAt(bytes: Buffer, at: number): boolean {
  return bytes[at] === OPEN_LIST
}

/** Where the one value of a document begins. Whoever has read it to its end tells `endOfDocument`. */
export function startOfDocument(bytes: Buffer): number {
  return skipSpace(bytes, hasMark(bytes) ? 3 : 0)
}

export function endOfDocument(bytes: Buffer, end: number): void {
  const after = skipSpace(bytes, end)
  if (after < bytes.length) throw broken('has more behind its end', after)
}

/** The one value that the bytes hold, without the white space around. */
export function wholeValue(bytes: Buffer): Span {
  const start = startOfDocument(bytes)
  const end = valueEnd(bytes, start)
  endOfDocument(bytes, end)
  return { start, end }
}

/** The members of the object that begins at `at`, one by one, in their order. Returns where it ends. */
export function* membersAt(bytes: Buffer, at: number): Generator<MemberSpan, number, void> {
  let position = skipSpace(bytes, at + 1)
  if (bytes[position] === CLOSE_OBJECT) return position + 1
  for (;;) {
    if (bytes[position] !== QUOTE) throw broken('needs a member name', position)
    const nameEnd = stringEnd(bytes, position)
    const name = memberName(bytes, position, nameEnd)
    position = skipSpace(bytes, nameEnd)
    if (bytes[position] !== COLON) throw broken("needs a ':'", position)
    const start = skipSpace(bytes, position + 1)
    const end = valueEnd(bytes, start)
    yield { name, start, end }
    position = skipSpace(bytes, end)
    if (bytes[position] === CLOSE_OBJECT) return position + 1
    if (bytes[position] !== COMMA) throw broken("needs a ',' or '}'", position)
    position = skipSpace(bytes, position + 1)
  }
}

/** The same for a list. */
export function* itemsAt(bytes: Buffer, at: number): Generator<Span, number, void> {
  let position = skipSpace(bytes, at + 1)
  if (bytes[position] === CLOSE_LIST) return position + 1
  for (;;) {
    const end = valueEnd(bytes, position)
    yield { start: position, end }
    position = skipSpace(bytes, end)
    if (bytes[position] === CLOSE_LIST) return position + 1
    if (bytes[position] !== COMMA) throw broken("needs a ',' or ']'", position)
    position = skipSpace(bytes, position + 1)
  }
}

/** The bytes of a value without white space between its tokens; they may be those given. */
export function compactValue(bytes: Buffer, { start, end }: Span): Buffer {
  const first = nextSpace(bytes, start, end)
  if (first === end) return bytes.subarray(start, end)
  const out = Buffer.allocUnsafeSlow(end - start)
  let length = bytes.copy(out, 0, start, first)
  for (let from = first; from < end; ) {
    while (from < end && isSpace(bytes[from])) from += 1
    const to = nextSpace(bytes, from, end)
    length += bytes.copy(out, length, from, to)
    from = to
  }
  return out.subarray(0, length)
}

/** A member name that stands twice in one object of a value, if there is one: readers do not agree on which of the two counts. */
export function repeatedMember(bytes: Buffer): string | undefined {
  const open: (Set<string> | undefined)[] = []
  let position = 0
  while (position < bytes.length) {
    const byte = bytes[position]
    if (byte === QUOTE) {
      const end = stringEnd(bytes, position)
      const names = open.at(-1)
      const next = skipSpace(bytes, end)
      if (names !== undefined && bytes[next] === COLON) {
        const name = memberName(bytes, position, end)
        if (names.has(name)) return name
        names.add(name)
      }
      position = end
      continue
    }
    if (byte === OPEN_OBJECT) open.push(new Set())
    else if (byte === OPEN_LIST) open.push(undefined)
    else if (byte === CLOSE_OBJECT || byte === CLOSE_LIST) open.pop()
    position += 1
  }
  return undefined
}

/** Just behind the value that begins at `at`. */
function valueEnd(bytes: Buffer, at: number): number {
  const byte = bytes[at]
  if (byte === QUOTE) return stringEnd(bytes, at)
  if (byte !== OPEN_OBJECT && byte !== OPEN_LIST) return scalarEnd(bytes, at)
  return bracketEnd(bytes, at)
}

function bracketEnd(bytes: Buffer, at: number): number {
  let closers = new Uint8Array(64)
  let depth = 0
  let position = at
  while (position < bytes.length) {
    const byte = bytes[position]
    if (byte === QUOTE) {
      position = stringEnd(bytes, position)
      continue
    }
    position += 1
    if (byte === OPEN_OBJECT || byte === OPEN_LIST) {
      if (depth === MAX_DEPTH) throw new ThvError('source_limit', `the document is nested deeper than ${MAX_DEPTH} levels`)
      if (depth === closers.length) closers = grown(closers)
      closers[depth] = byte + 2 // in ASCII each closing bracket is two behind its opening one
      depth += 1
    } else if (byte === CLOSE_OBJECT || byte === CLOSE_LIST) {
      depth -= 1
      if (closers[depth] !== byte) throw broken('closes a bracket of another kind', position - 1)
      if (depth === 0) return position
    }
  }
  throw broken('ends in the middle', bytes.length)
}

function stringEnd(bytes: Buffer, at: number): number {
  // Most strings are short, and a call into the runtime costs more than to look at each of their bytes.
  const near = Math.min(bytes.length, at + NEAR)
  let position = at + 1
  for (; position < near; position += 1) {
    const byte = bytes[position]
    if (byte === QUOTE) return position + 1
    if (byte === BACKSLASH) position += 1
  }
  return farStringEnd(bytes, at, position)
}

const NEAR = 200

/** No byte of the string before `first` ends it. */
function farStringEnd(bytes: Buffer, at: number, first: number): number {
  for (let from = first; ; ) {
    const quote = bytes.indexOf(QUOTE, from)
    if (quote === -1) throw broken('ends in the middle of a string', bytes.length)
    let slashes = 0
    while (bytes[quote - 1 - slashes] === BACKSLASH && quote - 1 - slashes > at) slashes += 1
    if (slashes % 2 === 0) return quote + 1
    from = quote + 1
  }
}

function scalarEnd(bytes: Buffer, at: number): number {
  let position = at
  while (position < bytes.length && isScalarByte(bytes[position] ?? 0)) position += 1
  if (position === at) throw position >= bytes.length ? broken('ends in the middle', position) : broken('needs a value', position)
  return position
}

/** Letters, digits, sign and point: whether they make a number or literal is for the parser. */
function isScalarByte(byte: number): boolean {
  return (
    (byte >= 0x30 && byte <= 0x39) || (byte >= 0x61 && byte <= 0x7a) || byte === 0x2d || byte === 0x2b || byte === 0x2e || byte === 0x45
  )
}

function memberName(bytes: Buffer, start: number, end: number): string {
  if (end - start > MAX_NAME) throw broken(`has a member name longer than ${MAX_NAME} bytes`, start)
  const plain = bytes.toString('utf8', start + 1, end - 1)
  if (!plain.includes('\\')) return plain
  try {
    return String(JSON.parse(bytes.toString('utf8', start, end)))
  } catch {
    throw broken('has a broken member name', start)
  }
}

const MAX_NAME = 16_384

function skipSpace(bytes: Buffer, at: number): number {
  let position = at
  while (isSpace(bytes[position])) position += 1
  return position
}

/** The next white space outside strings, or the end. */
function nextSpace(bytes: Buffer, at: number, end: number): number {
  let position = at
  while (position < end) {
    const byte = bytes[position]
    if (byte === QUOTE) position = stringEnd(bytes, position)
    else if (isSpace(byte)) return position
    else position += 1
  }
  return end
}

function isSpace(byte: number | undefined): boolean {
  return byte === SPACE || byte === LF || byte === CR || byte === TAB
}

function hasMark(bytes: Buffer): boolean {
  return bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf
}

function grown(bytes: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> {
  const larger = new Uint8Array(bytes.length * 2)
  larger.set(bytes)
  return larger
}

/** Says where, never what, and has no cause: the text may be no business of whoever reads the message. */
function broken(problem: string, at: number): ThvError {
  return new ThvError('source_failed', `the document is not JSON: it ${problem} (byte ${at})`)
}
