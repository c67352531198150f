import { randomBytes } from 'node:crypto'
import type { SseEvent } from './sse-decoder.ts'
import { isLegacyVersion, type LegacyVersion } from './versions.ts'

export interface EventLogOptions {
  /** The negotiated version: older clients choke on an event with empty data. */
  readonly version: LegacyVersion
  /** Events kept over all streams of the session; 1,000 unless given. */
  readonly maxEvents?: number
  /** Bytes of their data; 1 MiB unless given. */
  readonly maxBytes?: number
}

/** A stream of a legacy session, the logical one: it outlives the connections that carry it. */
export type StreamId = string

export type Replay =
  /** Send these, then go on with the stream, or close if it has ended. */
  | { readonly outcome: 'replay'; readonly stream: StreamId; readonly events: readonly SseEvent[]; readonly hasEnded: boolean }
  /** The id was ours, but events behind it are no longer held: nothing is replayed rather than something with a hole. */
  | { readonly outcome: 'lost'; readonly stream: StreamId }
  /** Not an id of this log: of another session, of an earlier process, or made up. */
  | { readonly outcome: 'unknown' }

/** Clients of the version take an event with an id and empty data. */
export function primesStreams(version: string): boolean {
  return isLegacyVersion(version) && version >= '2025-11-25'
}

const EVENT_ID = /^([\w-]{8})\.([0-9a-z]{1,10})\.([0-9a-z]{1,10})$/

/** The stream that an event id is of, also one of another process; undefined if it is no id of an event log. */
export function streamOfEvent(id: string): StreamId | undefined {
  return EVENT_ID.test(id) ? id.slice(0, id.lastIndexOf('.')) : undefined
}

/**
 * The last events of one legacy session, so that a client can resume a stream with `Last-Event-ID`. Ids name their log, their
 * stream and their place; a replay holds only what belonged to that stream. Bounded by count and bytes over the whole session: the
 * oldest events go first, whatever stream they are of.
 */
export class EventLog {
  readonly #maxEvents: number
  readonly #maxBytes: number
  readonly #primes: boolean
  /** A session may be taken over by another process, whose log counts from 1 as well. */
  readonly #mark = randomBytes(6).toString('base64url')
  readonly #streams = new Map<StreamId, Stream>()
  readonly #events = new Map<number, StoredEvent>() // by place, so in order of age
  #bytes = 0
  #place = 0
  #streamCount = 0

  constructor({ version, maxEvents = 1_000, maxBytes = 1024 * 1024 }: EventLogOptions) {
    this.#maxEvents = maxEvents
    this.#maxBytes = maxBytes
    this.#primes = primesStreams(version)
  }

  get size(): number {
    return this.#events.size
  }

  get bytes(): number {
    return this.#bytes
  }

  /** Begins a stream: one per POST that is answered by events, and the standalone one. Its opener must end it. */
  open(): StreamId {
    const stream = `${this.#mark}.${(++this.#streamCount).toString(36)}`
    this.#streams.set(stream, { hasEnded: false, held: 0, lostUpTo: 0 })
    return stream
  }

  /** The first event of a stream, to which a client can come back before it has seen any other; undefined for older clients. */
  prime(stream: StreamId): SseEvent | undefined {
    return this.#primes && this.#streams.has(stream) ? { id: this.#nextId(stream), data: '' } : undefined
  }

  /** Gives the message its id and keeps it. Undefined after the stream has ended or was forgotten: then it must not be sent. */
  append(stream: StreamId, data: string): SseEvent | undefined {
    const state = this.#streams.get(stream)
    if (state === undefined || state.hasEnded) return undefined
    const event: SseEvent = { id: this.#nextId(stream), event: 'message', data }
    const bytes = Buffer.byteLength(data)
    if (bytes > this.#maxBytes) {
      state.lostUpTo = this.#place // alone over the limit: to keep it would push out all others, and then itself
      return event
    }
    this.#events.set(this.#place, { stream, event, bytes })
    this.#bytes += bytes
    state.held++
    this.#evict()
    return event
  }

  /** Nothing will follow. Its events stay until they are pushed out, as the client may not have got them yet. */
  end(stream: StreamId): void {
    const state = this.#streams.get(stream)
    if (state === undefined) return
    state.hasEnded = true
    this.#forgetIfDone(stream, state)
  }

  replayAfter(lastEventId: string): Replay {
    const at = this.#parseId(lastEventId)
    if (at === undefined) return { outcome: 'unknown' }
    const state = this.#streams.get(at.stream)
    if (state === undefined || at.place < state.lostUpTo) return { outcome: 'lost', stream: at.stream }
    const events: SseEvent[] = []
    for (const [place, stored] of this.#events) {
      if (place > at.place && stored.stream === at.stream) events.push(stored.event)
    }
    return { outcome: 'replay', stream: at.stream, events, hasEnded: state.hasEnded }
  }

  #nextId(stream: StreamId): string {
    return `${stream}.${(++this.#place).toString(36)}`
  }

  /** Only what this log can have given out: right mark, and no number from the future. */
  #parseId(id: string): { stream: StreamId; place: number } | undefined {
    const match = EVENT_ID.exec(id)
    if (match === null || match[1] !== this.#mark) return undefined
    const stream = Number.parseInt(match[2] ?? '', 36)
    const place = Number.parseInt(match[3] ?? '', 36)
    if (stream < 1 || stream > this.#streamCount || place < 1 || place > this.#place) return undefined
    return { stream: `${this.#mark}.${stream.toString(36)}`, place }
  }

  #evict(): void {
    for (const [place, { stream, bytes }] of this.#events) {
      if (this.#events.size <= this.#maxEvents && this.#bytes <= this.#maxBytes) return
      this.#events.delete(place)
      this.#bytes -= bytes
      const state = this.#streams.get(stream)
      if (state === undefined) continue
      state.held--
      state.lostUpTo = Math.max(state.lostUpTo, place) // a larger, younger one may never have been kept
      this.#forgetIfDone(stream, state)
    }
  }

  #forgetIfDone(stream: StreamId, state: Stream): void {
    if (state.hasEnded && state.held === 0) this.#streams.delete(stream)
  }
}

interface Stream {
  hasEnded: boolean
  held: number
  /** Place of the newest event that is no longer held; who has seen less has a hole. */
  lostUpTo: number
}

interface StoredEvent {
  readonly stream: StreamId
  readonly event: SseEvent
  readonly bytes: number
}
