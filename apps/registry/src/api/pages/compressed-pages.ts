import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import type { ServedView } from '../../engine/engine.ts'

/** Compressed answers. A page costs many times its serving to compress, so it is done once per view, and off the main thread. */
export interface CompressedPages {
  /** Undefined: not there, and too large, or too much is being compressed already. Then the page goes out as it is. */
  get(view: ServedView, question: string, parts: () => readonly Uint8Array[]): Buffer | Promise<Buffer> | undefined
  readonly bytes: number
}

export interface CompressedPagesOptions {
  readonly maxBytes?: number
  /** Compressions at one time: a client that makes up questions must not take all cores. */
  readonly maxRunning?: number
  /** Before it is compressed. A thousand large documents are copied together in the main thread. */
  readonly maxPage?: number
}

const compress = promisify(gzip)
/** Higher levels take twice the time for a few percent. */
const LEVEL = 5
const MAX_QUESTION = 1_024
/** Of an entry beside its bytes. */
const OVERHEAD = 200

export function createCompressedPages(options: CompressedPagesOptions = {}): CompressedPages {
  const { maxBytes = 64 << 20, maxRunning = 2, maxPage = 16 << 20 } = options
  // In order of use. Pages of views that are served no more are never asked for again, and so are the first to go.
  const pages = new Map<string, Buffer>()
  const running = new Map<string, Promise<Buffer>>()
  const ids = new WeakMap<ServedView, number>()
  let lastId = 0
  let bytes = 0

  function idOf(view: ServedView): number {
    const known = ids.get(view)
    if (known !== undefined) return known
    lastId += 1
    ids.set(view, lastId)
    return lastId
  }

  function keep(key: string, page: Buffer): void {
    pages.set(key, page)
    bytes += page.length + key.length + OVERHEAD
    for (const [oldest, old] of pages) {
      if (bytes <= maxBytes) break
      pages.delete(oldest)
      bytes -= old.length + oldest.length + OVERHEAD
    }
  }

  async function run(key: string, parts: readonly Uint8Array[]): Promise<Buffer> {
    try {
      const page = await compress(Buffer.concat(parts), { level: LEVEL })
      keep(key, page)
      return page
    } finally {
      running.delete(key)
    }
  }

  return {
    get bytes() {
      return bytes
    },
    get(view, question, parts) {
      if (question.length > MAX_QUESTION) return undefined
      const key = `${idOf(view)} ${question}`
      const page = pages.get(key)
      if (page !== undefined) {
        pages.delete(key)
        pages.set(key, page)
        return page
      }
      const pending = running.get(key)
      if (pending !== undefined) return pending
      if (running.size >= maxRunning) return undefined
      const pieces = parts()
      if (pieces.reduce((sum, piece) => sum + piece.length, 0) > maxPage) return undefined
      const started = run(key, pieces)
      running.set(key, started)
      return started
    },
  }
}
