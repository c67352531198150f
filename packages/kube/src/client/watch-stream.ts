import { isThvError } from '@thv/kernel/errors'
import type { KubeObject, WatchEvent, WatchEventType } from '../objects/types.ts'
import { type CallName, expiredError, isGone, KubeApiError } from './kube-api-error.ts'
import { splitLines } from './line-splitter.ts'
import { asStatus, isRecord, malformed, parseObject } from './response-body.ts'
import type { Call, Transport } from './transport.ts'
import { codeOf, unreachable } from './unreachable.ts'

/** Far above the server's own limit for an object, so that only a broken stream reaches it. */
const MAX_LINE_BYTES = 64 << 20

/**
 * One watch connection as an async iterable. It ends
 * - normally, when the server ends the stream (its timeout) or nothing came for the silence limit: watch again from the last version;
 * - with `kube_watch_expired`, when the server no longer has that version: list again;
 * - with `kube_unreachable`, when the connection broke, also in the middle of an event; KubeApiError for any other refusal;
 * - with the signal's reason, when the signal aborts.
 * Leaving the loop closes the connection. A slow consumer stops the reading: at most a few chunks wait in memory.
 */
export async function* readWatch<T extends KubeObject>(
  transport: Transport,
  makeCall: () => Call,
): AsyncGenerator<WatchEvent<T>, void, undefined> {
  const call = makeCall()
  using stream = await open(transport, call)
  const lines = splitLines(stream.body, { limit: MAX_LINE_BYTES, call })
  while (true) {
    stream.scope.signal.throwIfAborted() // lines of the same chunk may still be at hand
    let line: IteratorResult<Buffer, Buffer>
    try {
      line = await lines.next()
    } catch (error) {
      if (stream.scope.signal.aborted) throw stream.scope.signal.reason
      if (isThvError(error)) throw error
      if (codeOf(error) === 'UND_ERR_BODY_TIMEOUT') return
      throw unreachable(call, stream.origin, error)
    }
    if (line.done) {
      const event = lastEvent<T>(line.value, call, stream.origin)
      if (event !== undefined) yield event
      return
    }
    if (line.value.length > 0) yield parseEvent<T>(line.value, call)
  }
}

async function open(transport: Transport, call: Call) {
  try {
    return await transport.open(call)
  } catch (error) {
    throw error instanceof KubeApiError && isGone(error) ? expiredError(error) : error
  }
}

/** The rest after the last newline: usually nothing. A JSON object shows its own end, so a whole one counts, half of one does not. */
function lastEvent<T extends KubeObject>(rest: Buffer, call: CallName, origin: string): WatchEvent<T> | undefined {
  if (rest.length === 0) return undefined
  try {
    return parseEvent<T>(rest, call)
  } catch (error) {
    throw isThvError(error, 'kube_response_malformed') ? unreachable(call, origin, new Error('the stream ended within an event')) : error
  }
}

function parseEvent<T extends KubeObject>(line: Buffer, call: CallName): WatchEvent<T> {
  const { type, object } = parseObject(line, call)
  if (!isRecord(object) || !isEventType(type)) throw malformed(call, 'not a watch event')
  if (type === 'ERROR') throw statusError(object, call)
  if (!isRecord(object.metadata)) throw malformed(call, 'a watch event whose object has no metadata')
  return { type, object: object as unknown as T }
}

function statusError(object: Record<string, unknown>, call: CallName): Error {
  const status = asStatus(object)
  if (status === undefined) return malformed(call, 'an ERROR event without a Status')
  const error = new KubeApiError({ call, status: status.code ?? 500, body: status })
  return isGone(error) ? expiredError(error) : error
}

function isEventType(type: unknown): type is WatchEventType {
  return type === 'ADDED' || type === 'MODIFIED' || type === 'DELETED' || type === 'BOOKMARK' || type === 'ERROR'
}
