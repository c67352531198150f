import {
  broken,
  CLOSE_LIST,
  CLOSE_OBJECT,
  COLON,
  COMMA,
  isSpace,
  memberName,
  OPEN_LIST,
  OPEN_OBJECT,
  QUOTE,
  skipSpace,
  stringEnd,
  valueEnd,
} from './json-bytes.ts'

/*
 * Finds where values begin and end in JSON that is too large, or too valuable, to be parsed and written again: a caller that cuts the bytes of
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

export function isObjectAt(bytes: Buffer, at: number): boolean {
  return bytes[at] === OPEN_OBJECT
}

export function isListAt(bytes: Buffer, at: number): boolean {
  return bytes[at] === OPEN_LIST
}

/** Where the one value of a document begins. A caller that has read it to its end calls `endOfDocument`. */
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

function hasMark(bytes: Buffer): boolean {
  return bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf
}
