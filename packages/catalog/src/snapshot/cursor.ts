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

export function decodeCursor(text: string): (CursorPlace & { readonly filter: string }) | undefined {
  if (text.length > MAX_CURSOR_LENGTH) return undefined
  const value = parse(Buffer.from(text, 'base64url').toString())
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
