import type { Writable } from 'node:stream'
import { abortable } from '@thv/kernel/deadline'
import { ThvError } from '@thv/kernel/errors'

/**
 * Writes one message to the standard input of a server, as one line and in one piece. Waits while the pipe is full: that is how a
 * slow server slows its clients down. Rejects with `signal.reason` or `stream_closed`; the line was not written then.
 */
export async function writeLine(stream: Writable, json: string, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted()
  while (stream.writableNeedDrain) {
    await roomIn(stream, signal)
    signal.throwIfAborted()
  }
  if (!stream.writable) throw closedError(stream.errored)
  stream.write(`${singleLine(json)}\n`)
}

/** In JSON a raw line end can only stand between tokens, where a space is as good. */
function singleLine(json: string): string {
  return json.includes('\n') || json.includes('\r') ? json.replace(/[\r\n]/g, ' ') : json
}

/** One set of listeners per stream, however many writers wait. */
const waits = new WeakMap<Writable, Promise<void>>()

function roomIn(stream: Writable, signal: AbortSignal): Promise<void> {
  let wait = waits.get(stream)
  if (wait === undefined) {
    wait = nextRoom(stream).finally(() => waits.delete(stream))
    wait.catch(() => {}) // every writer gets the rejection; that none is left to hear it is no fault
    waits.set(stream, wait)
  }
  return abortable(wait, signal)
}

function nextRoom(stream: Writable): Promise<void> {
  if (stream.destroyed) return Promise.reject(closedError(stream.errored))
  return new Promise((resolve, reject) => {
    const onDrain = () => settle(resolve)
    const onClose = () => settle(() => reject(closedError(stream.errored)))
    const settle = (then: () => void) => {
      stream.off('drain', onDrain).off('close', onClose).off('error', onClose)
      then()
    }
    stream.on('drain', onDrain).on('close', onClose).on('error', onClose)
  })
}

function closedError(cause: Error | null): ThvError {
  return new ThvError('stream_closed', 'the pipe to the server is closed', cause === null ? {} : { cause })
}
