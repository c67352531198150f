import { ThvError } from '@thv/kernel/errors'

/** The tokens of JSON in bytes: where strings, scalars and brackets end. What `json-scan` is made of. */

const TAB = 0x09
const LF = 0x0a
const CR = 0x0d
const SPACE = 0x20
export const QUOTE = 0x22
export const COMMA = 0x2c
export const COLON = 0x3a
export const OPEN_LIST = 0x5b
const BACKSLASH = 0x5c
export const CLOSE_LIST = 0x5d
export const OPEN_OBJECT = 0x7b
export const CLOSE_OBJECT = 0x7d

/** Where one bracket per level is remembered; real documents need fewer. */
const MAX_DEPTH = 1_000_000

/** Just behind the value that begins at `at`. */
export function valueEnd(bytes: Buffer, at: number): number {
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

export function stringEnd(bytes: Buffer, at: number): number {
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

export function memberName(bytes: Buffer, start: number, end: number): string {
  if (end - start > MAX_NAME) throw broken(`has a member name longer than ${MAX_NAME} bytes`, start)
  const plain = bytes.toString('utf8', start + 1, end - 1)
  if (!plain.includes('\\')) return plain
  try {
    return String(JSON.parse(bytes.toString('utf8', start, end)))
  } catch {
    throw broken('has a broken member name', start)
  }
}

/** Bytes of a member name as it is written, with its quotes. */
export const MAX_NAME = 16_384

export function skipSpace(bytes: Buffer, at: number): number {
  let position = at
  while (isSpace(bytes[position])) position += 1
  return position
}

export function isSpace(byte: number | undefined): boolean {
  return byte === SPACE || byte === LF || byte === CR || byte === TAB
}

function grown(bytes: Uint8Array<ArrayBuffer>): Uint8Array<ArrayBuffer> {
  const larger = new Uint8Array(bytes.length * 2)
  larger.set(bytes)
  return larger
}

/** Says where, never what, and has no cause: the reader of the message may not be allowed to see the text. */
export function broken(problem: string, at: number): ThvError {
  return new ThvError('source_failed', `the document is not JSON: it ${problem} (byte ${at})`)
}
