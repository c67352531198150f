import { ThvError } from '@thv/kernel/errors'
import type { CallName } from './kube-api-error.ts'

const NEWLINE = 0x0a

/**
 * Cuts a byte stream at newlines, before any decoding, so that a character that spans two chunks stays whole. Yields lines
 * without their newline and returns what stands after the last one. A line over the limit throws `kube_response_too_large`.
 * The source is read one chunk at a time, when the consumer asks for more.
 */
export async function* splitLines(
  source: AsyncIterable<Uint8Array>,
  { limit, call }: { limit: number; call: CallName },
): AsyncGenerator<Buffer, Buffer, undefined> {
  let held: Uint8Array[] = []
  let heldBytes = 0
  const check = (bytes: number) => {
    if (bytes > limit) {
      throw new ThvError('kube_response_too_large', `${call.verb} ${call.target}: a line is longer than ${limit} bytes`, {
        details: { limit },
      })
    }
  }

  for await (const chunk of source) {
    let start = 0
    for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, start)) {
      const tail = chunk.subarray(start, end)
      check(heldBytes + tail.length)
      yield held.length === 0 ? asBuffer(tail) : Buffer.concat([...held, tail])
      held = []
      heldBytes = 0
      start = end + 1
    }
    if (start < chunk.length) {
      held.push(chunk.subarray(start))
      heldBytes += chunk.length - start
      check(heldBytes)
    }
  }
  return Buffer.concat(held)
}

function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength)
}
