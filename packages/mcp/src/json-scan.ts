/** Depths at which members are counted; deeper ones only count for nesting. */
const COUNTED_DEPTHS = 3

export interface JsonScan {
  /** Nested deeper than allowed; then the counts are not complete. */
  readonly tooDeep: boolean
  /** Members (`"key": value`) of all objects at nesting depth 1, 2 and 3, repeated names counted each time. */
  readonly members: readonly [number, number, number]
}

/**
 * One pass over a JSON text before it is parsed: how deep it nests, and how many members it writes down near its root. It needs
 * no stack and no recursion, whatever the text. Malformed JSON gives some answer: the parser that runs next will refuse it.
 */
export function scanJson(text: string, maxDepth: number): JsonScan {
  const members: [number, number, number] = [0, 0, 0]
  let depth = 0
  for (let i = 0; i < text.length; i++) {
    switch (text.charCodeAt(i)) {
      case QUOTE:
        i = stringEnd(text, i)
        break
      case COLON:
        if (depth > 0 && depth <= COUNTED_DEPTHS) members[depth - 1] = (members[depth - 1] ?? 0) + 1
        break
      case OPEN_BRACE:
      case OPEN_BRACKET:
        if (++depth > maxDepth) return { tooDeep: true, members }
        break
      case CLOSE_BRACE:
      case CLOSE_BRACKET:
        depth--
        break
    }
  }
  return { tooDeep: false, members }
}

/** Index of the quote that ends the string which begins at `start`; the length of the text if there is none. */
export function stringEnd(text: string, start: number): number {
  for (let end = text.indexOf('"', start + 1); end !== -1; end = text.indexOf('"', end + 1)) {
    let backslashes = 0
    while (text.charCodeAt(end - 1 - backslashes) === BACKSLASH) backslashes++
    if (backslashes % 2 === 0) return end
  }
  return text.length
}

/** Index behind the value that begins at `start`. The text must be valid JSON. */
export function valueEnd(text: string, start: number): number {
  const first = text.charCodeAt(start)
  if (first === QUOTE) return stringEnd(text, start) + 1
  return first === OPEN_BRACE || first === OPEN_BRACKET ? containerEnd(text, start) : scalarEnd(text, start)
}

/** Index of the first character from `start` on that is not JSON white space. */
export function skipSpace(text: string, start: number): number {
  let i = start
  while (i < text.length && isSpace(text.charCodeAt(i))) i++
  return i
}

function containerEnd(text: string, start: number): number {
  let depth = 0
  for (let i = start; i < text.length; i++) {
    const code = text.charCodeAt(i)
    if (code === QUOTE) i = stringEnd(text, i)
    else if (code === OPEN_BRACE || code === OPEN_BRACKET) depth++
    else if ((code === CLOSE_BRACE || code === CLOSE_BRACKET) && --depth === 0) return i + 1
  }
  return text.length
}

function scalarEnd(text: string, start: number): number {
  let i = start
  for (; i < text.length; i++) {
    const code = text.charCodeAt(i)
    if (code === COMMA || code === CLOSE_BRACE || code === CLOSE_BRACKET || isSpace(code)) break
  }
  return i
}

function isSpace(code: number): boolean {
  return code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09
}

const QUOTE = 0x22
const COMMA = 0x2c
const COLON = 0x3a
const OPEN_BRACKET = 0x5b
const BACKSLASH = 0x5c
const CLOSE_BRACKET = 0x5d
const OPEN_BRACE = 0x7b
const CLOSE_BRACE = 0x7d
