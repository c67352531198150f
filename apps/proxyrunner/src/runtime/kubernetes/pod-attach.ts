import { Readable, Writable } from 'node:stream'
import type { Clock } from '@thv/kernel/clock'
import { errorMessage } from '@thv/kernel/errors'
import type { Connection } from '@thv/kube'
import { openPodStream, type PodStream, type PodStreamEnd } from '@thv/kube/streams/pod-stream'
import type { AttachEnd, AttachPort } from './attach-port.ts'

export interface PodAttachOptions {
  readonly clock?: Clock
  readonly openTimeoutMs?: number
  readonly pingIntervalMs?: number
  readonly silenceLimitMs?: number
}

/**
 * Attaches over the API server. Standard error is left to the kubelet's logs. A reader that is slow stops the server's output, and a
 * server that does not read makes `stdin` wait: nothing is dropped and little is held.
 */
export function createPodAttach(connection: Connection, options: PodAttachOptions = {}): AttachPort {
  return {
    async attach(target, signal) {
      const life = new AbortController()
      const giveUp = () => life.abort(signal.reason)
      signal.throwIfAborted()
      signal.addEventListener('abort', giveUp, { once: true })
      try {
        const streams = { kind: 'attach', stdin: true, stdout: true } as const
        const stream = await openPodStream(connection, { ...options, ...target, ...streams, signal: life.signal })
        return {
          stdin: stdinOf(stream),
          stdout: Readable.from(stream.stdout, { objectMode: false }),
          ended: stream.done.then(endOf),
          async close() {
            stream.close()
            await stream.done
          },
        }
      } finally {
        signal.removeEventListener('abort', giveUp)
      }
    },
  }
}

/** Ending it does nothing: the server's standard input stays open for the next who attaches. */
function stdinOf(stream: PodStream): Writable {
  const stdin = new Writable({
    highWaterMark: 64 << 10,
    write: (chunk: Uint8Array, _encoding, callback) => {
      stream.write(chunk).then(() => callback(), callback)
    },
    // Writes of one turn go out together.
    writev: (chunks, callback) => {
      const parts = chunks.map(({ chunk }: { chunk: Uint8Array }) => chunk)
      stream.write(parts.length === 1 && parts[0] ? parts[0] : Buffer.concat(parts)).then(() => callback(), callback)
    },
  })
  stdin.on('error', () => {}) // the end of the stream tells all
  void stream.done.then(() => stdin.destroy())
  return stdin
}

function endOf({ status, error }: PodStreamEnd): AttachEnd {
  if (error !== undefined) return { message: errorMessage(error) }
  return { message: status?.message || 'the stream was ended by the cluster', inOrder: true }
}
