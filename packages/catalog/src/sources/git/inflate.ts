import { createInflate, inflateSync } from 'node:zlib'
import { failed } from './git-error.ts'

/** Where compressed bytes are. */
export interface Deflated {
  read(position: number, length: number): Buffer
  readonly position: number
  /** Bytes behind this one are not part of it. */
  readonly end: number
  /** Its exact size when inflated. */
  readonly size: number
}

const INPUT_WINDOW = 64 * 1024
const OUTPUT_WINDOW = 256 * 1024
/** Up to this size at once: a stream costs about as much as inflating 50 KB. */
const SMALL = 512 * 1024

/**
 * Inflates one object and gives its bytes to `onData`; memory is bounded by two windows, however large the object. Returns how many
 * compressed bytes it took. What inflates to more or less than it should is refused as soon as that shows.
 */
export async function inflate(source: Deflated, onData: (chunk: Buffer) => void): Promise<number> {
  const taken = (source.size <= SMALL ? inflateSmall(source, onData) : undefined) ?? (await inflateStream(source, onData))
  if (source.position + taken > source.end) throw failed('an object of the pack runs into its checksum')
  return taken
}

/** undefined: its compressed form is larger than a sound compressor would make it. */
function inflateSmall({ read, position, size }: Deflated, onData: (chunk: Buffer) => void): number | undefined {
  const input = read(position, size + (size >> 6) + 256)
  try {
    // The types know only the form without `info`.
    const result: unknown = inflateSync(input, { info: true, maxOutputLength: Math.max(1, size), chunkSize: Math.max(64, size + 1) })
    const { buffer, engine } = result as { buffer: Buffer; engine: { bytesWritten: number } }
    if (buffer.length !== size) throw wrongSize()
    onData(buffer)
    return engine.bytesWritten
  } catch (error) {
    const code = codeOf(error)
    if (code === 'Z_BUF_ERROR') return undefined
    throw inflateError(error)
  }
}

function inflateStream({ read, position, size }: Deflated, onData: (chunk: Buffer) => void): Promise<number> {
  const { promise, resolve, reject } = Promise.withResolvers<number>()
  const engine = createInflate({ chunkSize: OUTPUT_WINDOW })
  let done = false
  let left = size
  let at = position

  function settle(error?: unknown): void {
    if (done) return
    done = true
    if (error === undefined) resolve(engine.bytesWritten)
    else reject(inflateError(error))
    engine.destroy()
  }
  function feed(): void {
    if (done) return
    try {
      const input = read(at, INPUT_WINDOW)
      if (input.length === 0) throw failed('the pack ends in the middle of an object')
      at += input.length
      engine.write(input, (error) => (error ? settle(error) : feed()))
    } catch (error) {
      settle(error)
    }
  }

  engine.on('error', settle)
  engine.on('data', (chunk: Buffer) => {
    if (done) return
    left -= chunk.length
    try {
      if (left < 0) throw wrongSize()
      onData(chunk)
    } catch (error) {
      settle(error)
    }
  })
  engine.on('end', () => settle(left === 0 ? undefined : wrongSize()))
  feed()
  return promise
}

function wrongSize(): Error {
  return failed('an object of the pack does not have the size it says')
}

function inflateError(error: unknown): unknown {
  const code = codeOf(error)
  if (code === 'ERR_BUFFER_TOO_LARGE') return wrongSize()
  return code?.startsWith('Z_') ? failed(`an object of the pack is broken (${code})`) : error
}

function codeOf(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined
}
