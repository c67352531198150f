import { isUtf8 } from 'node:buffer'

/** Where a page ended: the last entry it showed. By key and not by number, so it holds when entries come and go. */
export interface CursorPlace {
  readonly name: string
  readonly version: string
}

const FORMAT = 1
const MAX_CURSOR_LENGTH = 4096

/** `filter` is the hash of what was asked; a cursor is good for the same question only. */
export function encodeCursor(place: CursorPlace, filter: string): string {
  return Buffer.from(JSON.stringify({ v: FORMAT, name: place.name, version: place.version, filter })).toString('base64url')
}

/** Output of `encodeCursor` when nothing in it has to be escaped. */
const PLAIN = /^\{"v":1,"name":"([^"\\\p{Cc}]*)","version":"([^"\\\p{Cc}]*)","filter":"([^"\\\p{Cc}]*)"\}$/u

export function decodeCursor(text: string): (CursorPlace & { readonly filter: string }) | undefined {
  if (text.length > MAX_CURSOR_LENGTH) return undefined
  const bytes = Buffer.from(text, 'base64url')
  const json = bytes.toString()
  const plain = PLAIN.exec(json)
  // Which is as strict as what follows, and costs half of it.
  if (plain !== null && isUtf8(bytes) && bytes.toString('base64url') === text)
    return { name: plain[1] ?? '', version: plain[2] ?? '', filter: plain[3] ?? '' }
  const value = parse(json)
  if (typeof value !== 'object' || value === null) return undefined
  const { name, version, filter } = value as Record<string, unknown>
  if (typeof name !== 'string' || typeof version !== 'string' || typeof filter !== 'string') return undefined
  // Only what `encodeCursor` writes: this refuses other formats, other alphabets, bad UTF-8 and additions in one comparison.
  return encodeCursor({ name, version }, filter) === text ? { name, version, filter } : undefined
}

function parse(json: string): unknown {
  try {
    return JSON.parse(json)
  } catch {
    return undefined // not JSON: the caller answers "undecodable", as for any other form
  }
}
