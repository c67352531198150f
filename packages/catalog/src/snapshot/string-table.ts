import type { Steps } from '@thv/kernel/steps'

/** Strings as UTF-8 bytes in two buffers. A table sorted by code point can be searched. */
export interface StringTable {
  readonly bytes: Uint8Array
  /** Item `i` is `bytes[offsets[i] .. offsets[i + 1]]`. */
  readonly offsets: Uint32Array
}

export interface StringTableReader {
  readonly size: number
  get(index: number): string
  /** Its length in UTF-8, without reading it. */
  byteLength(index: number): number
  /** The first item that is not below `key`. */
  lowerBound(key: string): number
  /** -1 when absent. */
  find(key: string): number
}

const ITEMS_PER_STEP = 4096

export function* stringTable(texts: readonly string[]): Steps<StringTable> {
  const offsets = new Uint32Array(texts.length + 1)
  const parts: Buffer[] = []
  let total = 0
  for (let start = 0; start < texts.length; start += ITEMS_PER_STEP) {
    const some = texts.slice(start, start + ITEMS_PER_STEP)
    const joined = some.join('')
    // As many bytes as letters: then all are ASCII, and are measured and written at once.
    const isPlain = Buffer.byteLength(joined) === joined.length
    for (let i = 0; i < some.length; i++) {
      const text = some[i] ?? ''
      total += isPlain ? text.length : Buffer.byteLength(text)
      offsets[start + i + 1] = total
    }
    parts.push(isPlain ? Buffer.from(joined, 'latin1') : Buffer.concat(some.map((text) => Buffer.from(text))))
    yield
  }
  const bytes = new Uint8Array(total)
  let at = 0
  for (const part of parts) {
    bytes.set(part, at)
    at += part.length
  }
  return { bytes, offsets }
}

export function readStringTable(table: StringTable): StringTableReader {
  const { offsets } = table
  const bytes = Buffer.from(table.bytes.buffer, table.bytes.byteOffset, table.bytes.byteLength)
  const size = offsets.length - 1

  /** Below 0: the item is before the key. By hand: names are short, and differ early or not at all; a call of the runtime's costs more. */
  function order(key: Buffer, index: number): number {
    const start = offsets[index] ?? 0
    const length = (offsets[index + 1] ?? 0) - start
    const shared = Math.min(length, key.length)
    for (let i = 0; i < shared; i++) {
      const difference = (bytes[start + i] ?? 0) - (key[i] ?? 0)
      if (difference !== 0) return difference
    }
    return length - key.length
  }

  function bound(key: Buffer): number {
    let low = 0
    let high = size
    while (low < high) {
      const middle = (low + high) >>> 1
      if (order(key, middle) < 0) low = middle + 1
      else high = middle
    }
    return low
  }

  return {
    size,
    get: (index) => bytes.toString('utf8', offsets[index], offsets[index + 1]),
    byteLength: (index) => (offsets[index + 1] ?? 0) - (offsets[index] ?? 0),
    lowerBound: (key) => bound(Buffer.from(key)),
    find(key) {
      const wanted = Buffer.from(key)
      const index = bound(wanted)
      return index < size && order(wanted, index) === 0 ? index : -1
    },
  }
}
