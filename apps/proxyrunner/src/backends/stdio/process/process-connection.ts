import { brokenAnswer, connectionLost, timedOut, unavailable } from '@thv/gateway/response/backend-rejection'
import { mintMark } from '@thv/gateway/sessions/id-prefix'
import type { Taker } from '@thv/gateway/streams/client-stream'
import type { Clock, Timer } from '@thv/kernel/clock'
import { errorMessage, ThvError } from '@thv/kernel/errors'
import { type RequestId, resultResponse, serialise, spliceId } from '@thv/mcp/json-rpc'
import { spliceMember } from '@thv/mcp/json-splice'
import { LineFramer, type Noise } from '@thv/mcp/line-framer'
import { METHODS, NOTIFICATIONS } from '@thv/mcp/methods'
import type { ParsedMessage, ParsedNotification, ParsedRequest, ParsedResponse } from '@thv/mcp/parse-body'
import type { Rejection } from '@thv/mcp/wire-errors'
import type { Log } from '@thv/telemetry/log'
import type { StdioConnection, StdioEnd } from '../../../runtime/runtime.ts'
import { type CallOptions, type CallSink, InFlight, type InFlightCall } from './in-flight.ts'
import { idOf, NoiseLog } from './noise-log.ts'
import { PipeHold } from './pipe-hold.ts'
import { PipeWriter } from './pipe-writer.ts'
import { RecentParties } from './recent-parties.ts'
import type { StdioConfig } from './stdio-config.ts'
import type { StdioMetrics } from './stdio-metrics.ts'

/** Messages that the process sends of its own accord. */
export interface LinkListener {
  /** The receiver must see to it that it is answered. Pings do not come here: the link answers them. */
  onRequest(request: ParsedRequest): void
  /** All but the progress of calls. */
  onNotification(notification: ParsedNotification): void
  /** After all calls have failed. Called once. */
  onEnd(end: StdioEnd): void
}

export interface LinkOptions {
  readonly connection: StdioConnection
  readonly config: StdioConfig
  readonly clock: Clock
  readonly log: Log
  readonly metrics: StdioMetrics
  readonly listener: LinkListener
}

/** A call that is to be sent: the client's own text, and its progress token if it has one. */
export interface OutgoingCall {
  readonly text: string
  readonly hasToken: boolean
}

/**
 * One server process: framing, correlation, limits. Ids and progress tokens on this pipe are the link's own, made of a random prefix
 * and a number, so that no answer can reach anybody but the one who waits for it, and an answer meant for an earlier runner on the
 * same pod reaches no client. The client's messages change in their id and token only.
 */
export class ProcessLink {
  readonly #options: LinkOptions
  readonly #inFlight = new InFlight()
  readonly #recent = new RecentParties()
  readonly #prefix = mintMark()
  readonly #framer: LineFramer
  readonly #closing = new AbortController()
  readonly #hold: PipeHold
  readonly #writer: PipeWriter
  readonly #noiseLog: NoiseLog
  #count = 0
  #sweeper: Timer | undefined
  #ended = false
  #outputOver = false
  #end: StdioEnd | undefined
  #hasSpoken = false
  #noiseLines = 0

  constructor(options: LinkOptions) {
    this.#options = options
    this.#hold = new PipeHold(options.connection.stdout, options.clock, this.#closing.signal)
    this.#writer = new PipeWriter(options.connection.stdin, this.#closing.signal)
    this.#noiseLog = new NoiseLog(options.log, options.clock)
    this.#framer = new LineFramer({
      maxLineBytes: options.config.maxLineBytes,
      onMessage: (message) => this.#received(message),
      onNoise: (noise) => this.#noise(noise),
    })
    this.#attach(options.connection)
  }

  get ended(): boolean {
    return this.#ended
  }

  get inFlight(): number {
    return this.#inFlight.size
  }

  get owners(): ReadonlyMap<object, number> {
    return this.#inFlight.owners
  }

  /** A call of anybody but this party was answered so recently that the server may still say something on its behalf. */
  answeredOther(party: string): boolean {
    return this.#recent.hasOther(party, this.#options.clock.monotonic())
  }

  /** The process has written something, so it is up. */
  /** How many lines it wrote that are no messages. */
  get noiseLines(): number {
    return this.#noiseLines
  }

  get hasSpoken(): boolean {
    return this.#hasSpoken
  }

  /** The waiting side of the call with that id on the wire, unless it was given up. */
  sinkOf(wireId: string): CallSink | undefined {
    const call = this.#inFlight.get(wireId)
    return call?.ghostUntil === undefined ? call?.sink : undefined
  }

  /** Sends a call under an id of its own. A full pipe slows the caller's clients down: nothing is dropped. */
  call({ text, hasToken }: OutgoingCall, sink: CallSink, options: CallOptions = {}): InFlightCall {
    const wireId = `${this.#prefix}.${(++this.#count).toString(36)}`
    const json = JSON.stringify(wireId)
    const now = this.#options.clock.monotonic()
    const line = hasToken ? spliceMember(spliceId(text, wireId), ['params', '_meta', 'progressToken'], json) : spliceId(text, wireId)
    const call: InFlightCall = {
      ...options,
      wireId,
      sink,
      startedAt: now,
      activeAt: now,
      isSlow: false,
      ghostUntil: undefined,
      written: RESOLVED,
    }
    if (this.#ended || this.#inFlight.size >= this.#limit) {
      sink.onFailure(unavailable(this.#ended ? 'it has ended' : 'too many calls are waiting for it'))
      return call
    }
    this.#inFlight.add(call)
    this.#armSweeper()
    call.written = this.#writer.write(line)
    call.written.catch(() => this.#fail(call, unavailable('it does not take the call')))
    return call
  }

  /**
   * The call has no waiting client. The server is notified, under the id that it knows; a late answer is dropped. For some time the call still counts
   * for attribution: the server may go on with it and say something on its behalf.
   */
  cancel(call: InFlightCall, reason: string, ghostMs: number = this.#options.config.ghostMs): void {
    const { clock } = this.#options
    if (call.ghostUntil !== undefined || this.#inFlight.get(call.wireId) !== call) return
    this.#inFlight.abandon(call, clock.monotonic() + ghostMs)
    const params = { requestId: call.wireId, reason }
    const line = serialise({ jsonrpc: '2.0', method: NOTIFICATIONS.cancelled, params })
    call.written.then(() => this.send(line)).catch(ignoreClosed)
  }

  /** A notification or response, as it is. Lost if the process ends first, as anything on a pipe. */
  send(text: string): void {
    if (!this.#ended) this.#writer.write(text).catch(ignoreClosed)
  }

  /** An answer to a request of the server, under the server's id. */
  respond(text: string, id: RequestId): void {
    this.send(spliceId(text, id))
  }

  holdFor(taker: Taker, limitMs: number): void {
    this.#hold.holdFor(taker, limitMs)
  }

  async close(): Promise<void> {
    this.#finish({ message: 'closed by the runner' })
    await this.#options.connection.close()
  }

  #attach(connection: StdioConnection): void {
    const { stdin, stdout, ended } = connection
    stdin.on('error', (error) => this.#options.log.debug('standard input of the server failed', { error: errorMessage(error) }))
    stdout.on('data', (chunk: Uint8Array) => this.#read(chunk))
    const outputEnd = new Promise<void>((resolve) => {
      stdout
        .on('end', resolve)
        .on('close', resolve)
        .on('error', () => resolve())
    })
    outputEnd.then(() => (this.#end === undefined ? this.#outputEnded() : this.#lastOutput(this.#end)))
    ended.then((end) => this.#processEnded(end))
  }

  #read(chunk: Uint8Array): void {
    this.#hasSpoken = true
    if (!this.#ended) this.#framer.push(chunk)
  }

  /** A process without output cannot answer. Most often it is about to exit. */
  #outputEnded(): void {
    this.#outputOver = true
    if (this.#ended) return
    this.#framer.end()
    this.#options.clock.setTimer(EXIT_CODE_MS, () => {
      if (this.#ended) return
      this.#finish({ message: 'the server closed its standard output' })
      this.#options.connection.close().catch((error) => this.#options.log.warn('a server did not stop', { error: errorMessage(error) }))
    })
  }

  /** Its last output may still be on the way, or wait for a slow client. */
  #processEnded(end: StdioEnd): void {
    this.#end = end
    if (this.#outputOver) this.#finish(end)
    else this.#options.clock.setTimer(LAST_OUTPUT_MS, () => (this.#hold.isHolding ? this.#processEnded(end) : this.#finish(end)))
  }

  #lastOutput(end: StdioEnd): void {
    this.#framer.end()
    this.#finish(end)
  }

  #finish(end: StdioEnd): void {
    if (this.#ended) return
    this.#ended = true
    this.#sweeper?.cancel()
    this.#closing.abort(new ThvError('stream_closed', 'the server process has ended'))
    for (const call of this.#inFlight.takeAll()) this.#guarded('a lost call', () => call.sink.onFailure(lostCall()))
    this.#options.listener.onEnd(end)
  }

  #received(message: ParsedMessage): void {
    this.#guarded(message.method ?? 'a response', () => {
      if (message.kind === 'response') this.#response(message)
      else if (message.kind === 'request') this.#request(message)
      else this.#notification(message)
    })
  }

  /** A fault of ours in the handling of one message must not end the handling of all others. */
  #guarded(what: string, work: () => void): void {
    try {
      work()
    } catch (error) {
      this.#options.log.error('a message could not be handled', { what, error: errorMessage(error) })
    }
  }

  #response(response: ParsedResponse): void {
    const call = typeof response.id === 'string' ? this.#inFlight.get(response.id) : undefined
    if (call === undefined) {
      const isOurs = typeof response.id === 'string' && response.id.startsWith(`${this.#prefix}.`)
      this.#options.metrics.dropped('response', isOurs ? 'late' : 'foreign_id')
      return
    }
    const isGhost = call.ghostUntil !== undefined
    this.#settle(call)
    if (isGhost) this.#options.metrics.dropped('response', 'late')
    else call.sink.onResponse(response)
  }

  #request(request: ParsedRequest): void {
    if (request.method === METHODS.ping) this.send(serialise(resultResponse(request.id, {})))
    else this.#options.listener.onRequest(request)
  }

  #notification(notification: ParsedNotification): void {
    if (notification.method !== NOTIFICATIONS.progress) {
      this.#options.listener.onNotification(notification)
      return
    }
    const token = notification.message.params?.['progressToken']
    const call = typeof token === 'string' ? this.#inFlight.get(token) : undefined
    if (call === undefined || call.ghostUntil !== undefined || call.sink.onProgress === undefined) {
      this.#options.metrics.dropped('progress', call === undefined ? 'foreign_id' : 'late')
      return
    }
    call.activeAt = this.#options.clock.monotonic()
    call.sink.onProgress(notification)
  }

  /** Servers print all sorts of things. Where it can be seen which call it should have answered, that one need not wait. */
  #noise(noise: Noise): void {
    this.#noiseLines++
    this.#options.metrics.dropped('line', 'noise')
    this.#noiseLog.add(noise)
    const id = idOf(noise)
    const call = typeof id === 'string' ? this.#inFlight.get(id) : undefined
    if (call === undefined) return
    this.#fail(call, brokenAnswer(noise.reason === 'too_large' ? 'the answer is over the size limit' : 'the answer is malformed'))
  }

  #fail(call: InFlightCall, rejection: Rejection): void {
    if (this.#inFlight.get(call.wireId) !== call) return
    const isGhost = call.ghostUntil !== undefined
    this.#settle(call)
    if (!isGhost) call.sink.onFailure(rejection)
  }

  #settle(call: InFlightCall): void {
    const { clock, config } = this.#options
    this.#inFlight.remove(call)
    if (call.party !== undefined) this.#recent.add(call.party, clock.monotonic() + config.lateMs)
  }

  /** Subscriptions stay for long and have a limit of their own. */
  get #limit(): number {
    return this.#options.config.maxInFlight + this.#options.config.maxListens
  }

  #armSweeper(): void {
    const { clock, config } = this.#options
    this.#sweeper ??= clock.setTimer(Math.min(SWEEP_MS, config.idleTimeoutMs / 4), () => this.#sweep())
  }

  #sweep(): void {
    this.#sweeper = undefined
    for (const call of this.#inFlight.sweep(this.#options.clock.monotonic())) {
      this.cancel(call, 'timed out')
      this.#guarded('a call that timed out', () => call.sink.onFailure(timedOut('no answer within the time limit')))
    }
    if (!this.#inFlight.isEmpty && !this.#ended) this.#armSweeper()
  }
}

/** The server may have acted on it: only who sent it knows whether it is safe to repeat. */
function lostCall(): Rejection {
  return connectionLost('the server process ended before it answered; the call may have been carried out')
}

/** The end of the process reaches everybody who waits; a single write that it cut off has nothing to add. */
function ignoreClosed(): void {}

const RESOLVED = Promise.resolve()
const SWEEP_MS = 1_000
const LAST_OUTPUT_MS = 1_000
const EXIT_CODE_MS = 250
