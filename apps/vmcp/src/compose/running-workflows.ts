import { randomUUID } from 'node:crypto'
import type { Clock, Timer } from '@thv/kernel/clock'
import { errorMessage } from '@thv/kernel/errors'
import { type StreamId, streamOfEvent } from '@thv/mcp/event-log'
import { isObject, type RequestId } from '@thv/mcp/json-rpc'
import type { JsonValue, SessionRef, SessionStore } from '@thv/store/session-store'
import type { Log } from '@thv/telemetry/log'

export interface RunningWorkflowsOptions {
  readonly store: SessionStore<JsonValue>
  readonly clock: Clock
  readonly log: Log
  /** Name of this replica, for logs. */
  readonly replica: string
}

export interface RunningRequest {
  readonly session: { readonly id: string; readonly principal: string; readonly party: string }
  readonly requestId: RequestId
  /** That the client could come back to. */
  readonly stream: StreamId
  /** Another replica has told the client that the workflow was interrupted: it must not go on. */
  onLost(): void
}

/** `running`: at another replica, as far as can be known. */
export type LeftWorkflow = 'running' | { readonly requestId: RequestId; readonly mayHaveRun: number }

interface Left {
  readonly request: RequestId
  /** Steps that may have called a tool. */
  readonly steps: number
  /** The lease of the replica, by the wall clock. */
  readonly until: number
  readonly replica: string
  /** The claim of the replica that tells the client; empty if there is none. */
  readonly reportedBy: string
}

type Stored = Left & { readonly [name: string]: JsonValue }

const LEASE_MS = 15_000
const RENEW_MS = 5_000
/** So long a client can come back to a workflow whose replica is gone. */
const KEPT_MS = 600_000
const MAX_ID_BYTES = 512
const ATTEMPTS = 3
const MAX_UNTOLD = 1_000

/**
 * Records of workflows that run for clients of the handshake era, in a store of all replicas: if one dies, another tells its clients how much
 * may have run. As many per client as workflows may run for it. A lease that is judged wrongly, by clocks that differ, ends the workflow before its
 * next step, so that the answer of the other replica stays true.
 */
export class RunningWorkflows {
  readonly #options: RunningWorkflowsOptions
  readonly #running = new Set<RunningWorkflow>()
  readonly #ending = new Set<Promise<void>>()
  /** Claims of records that this replica has made, or may have, and not told of yet. */
  readonly #untold = new Map<string, string>()

  constructor(options: RunningWorkflowsOptions) {
    this.#options = options
  }

  /** Undefined for a request whose id is too long to be kept. Nothing is stored before it begins. */
  open(request: RunningRequest): RunningWorkflow | undefined {
    if (Buffer.byteLength(String(request.requestId)) > MAX_ID_BYTES) return undefined
    const workflow = new RunningWorkflow(this.#options, request)
    this.#running.add(workflow)
    return workflow
  }

  /** The workflow has been answered, or is not wanted any more. */
  end(workflow: RunningWorkflow): void {
    if (this.#running.delete(workflow)) this.#track(workflow.remove())
  }

  /** The workflow whose stream the client has come back to. An interrupted one is found once, by a client that is still there. Rejects if the store does not work. */
  async find(
    { id, principal: owner }: RunningRequest['session'],
    eventId: string,
    isGone = () => false,
  ): Promise<LeftWorkflow | undefined> {
    const { store, clock, log } = this.#options
    const stream = streamOfEvent(eventId)
    if (stream === undefined) return undefined
    const ref = { id: recordId(id, stream), owner }
    const stored = await store.get(ref)
    const left = stored && leftOf(stored.value)
    if (stored === undefined || left === undefined) return undefined
    const claimed = left.reportedBy === '' && left.until <= clock.now() ? await this.#claim(ref, left, stored.version) : left
    if (claimed?.reportedBy === '') return 'running'
    if (claimed === undefined || claimed.reportedBy !== this.#untold.get(ref.id) || isGone()) return undefined
    this.#untold.delete(ref.id)
    log.warn('a composite tool was interrupted: its replica is gone', { replica: left.replica, mayHaveRun: claimed.steps })
    return { requestId: claimed.request, mayHaveRun: claimed.steps }
  }

  /** The record as it is then. The one that was read may be old: it becomes ours only if it is still the same. */
  async #claim(ref: SessionRef, left: Stored, version: number): Promise<Stored | undefined> {
    // Remembered until the client receives it: if the answer to the write is lost, the client comes again.
    const claim = this.#untold.get(ref.id) ?? randomUUID()
    this.#remember(ref.id, claim)
    const answer = await this.#options.store.update(ref, { ...left, reportedBy: claim }, version)
    const claimed = answer.outcome === 'missing' ? undefined : leftOf(answer.session.value)
    if (claimed?.reportedBy !== claim) this.#untold.delete(ref.id)
    return claimed
  }

  /** Where there are too many, the oldest one goes: its record is the first to expire, and its client the last to be expected. */
  #remember(id: string, claim: string): void {
    this.#untold.delete(id)
    const oldest = this.#untold.size < MAX_UNTOLD ? undefined : this.#untold.keys().next().value
    if (oldest !== undefined) this.#untold.delete(oldest)
    this.#untold.set(id, claim)
  }

  /** This replica stops, and what still runs is cut off: others may tell of it at once. */
  leave(): void {
    for (const workflow of this.#running) this.#track(workflow.giveUp())
    this.#running.clear()
  }

  async close(): Promise<void> {
    this.leave()
    await Promise.all(this.#ending)
    await this.#options.store.close()
  }

  #track(ending: Promise<void>): void {
    const tracked = ending.finally(() => this.#ending.delete(tracked))
    this.#ending.add(tracked)
  }
}

/** The record of one workflow. A store that does not work holds up no workflow: it goes on without, and the count is that of the last write. */
export class RunningWorkflow {
  readonly #options: RunningWorkflowsOptions
  readonly #request: RunningRequest
  readonly #ref: SessionRef
  readonly #steps = new Set<string>()
  /** Writes are made one after another. */
  #writes: Promise<void> = Promise.resolve()
  /** 0: nothing is known to be stored. */
  #version = 0
  #written = 0
  #renewal: Timer | undefined
  #isOver = false
  #isAttempted = false
  #isReported = false

  constructor(options: RunningWorkflowsOptions, request: RunningRequest) {
    this.#options = options
    this.#request = request
    this.#ref = { id: recordId(request.session.id, request.stream), owner: request.session.principal }
  }

  begin(): Promise<void> {
    this.#renewLater()
    return this.#inTurn(() => this.#write())
  }

  /** The step is about to call a tool: resolves when it is written down, and can begin. */
  async step(id: string): Promise<void> {
    this.#steps.add(id)
    // Steps that begin together are written together.
    await this.#inTurn(() => (this.#written < this.#steps.size ? this.#write() : undefined))
  }

  remove(attempt = 1): Promise<void> {
    const { store, clock } = this.#options
    return this.#last(async () => {
      if (!this.#isAttempted) return
      try {
        await store.delete(this.#ref)
      } catch (error) {
        if (attempt < ATTEMPTS) clock.setTimer(RENEW_MS * (attempt + Math.random()), () => void this.remove(attempt + 1))
        throw error
      }
    })
  }

  giveUp(): Promise<void> {
    return this.#last(async () => {
      if (this.#version > 0 && !this.#isReported) await this.#options.store.update(this.#ref, this.#value(0), this.#version)
    })
  }

  #last(write: () => Promise<void>): Promise<void> {
    this.#isOver = true
    this.#renewal?.cancel()
    return this.#inTurn(write)
  }

  async #write(): Promise<void> {
    for (let attempt = 1; attempt <= ATTEMPTS && !this.#isOver; attempt++) {
      try {
        const value = this.#value()
        if (this.#version === 0 ? await this.#create(value) : await this.#update(value)) {
          this.#written = value.steps
          return
        }
      } catch (error) {
        // Once more, at once: a step waits for it.
        if (attempt > 1) throw error
      }
    }
  }

  async #create(value: Stored): Promise<boolean> {
    this.#isAttempted = true
    const outcome = await this.#options.store.create({ ...this.#ref, party: this.#request.session.party, value }, KEPT_MS)
    if (outcome === 'full') this.#stop('there is no room to note that a composite tool runs')
    // It exists after a write whose answer was lost.
    else this.#version = 1
    return outcome === 'created'
  }

  async #update(value: Stored): Promise<boolean> {
    const answer = await this.#options.store.update(this.#ref, value, this.#version)
    if (answer.outcome === 'missing') {
      this.#version = 0
      this.#stop('the note that a composite tool runs was lost')
      return false
    }
    this.#version = answer.session.version
    if (answer.outcome === 'conflict' && (leftOf(answer.session.value)?.reportedBy ?? '') !== '') {
      this.#isReported = true
      this.#stop('a composite tool is stopped: another replica has told its client that it was interrupted')
      this.#request.onLost()
    }
    return answer.outcome === 'updated'
  }

  /** Nothing is written any more, except that it is over. */
  #stop(why: string): void {
    this.#isOver = true
    this.#renewal?.cancel()
    this.#options.log.warn(why)
  }

  #renewLater(): void {
    if (this.#isOver) return
    this.#renewal = this.#options.clock.setTimer(RENEW_MS, () => {
      void this.#inTurn(() => this.#write()).then(() => this.#renewLater())
    })
  }

  #value(until = this.#options.clock.now() + LEASE_MS): Stored {
    const { replica } = this.#options
    return { request: this.#request.requestId, steps: this.#steps.size, until, replica, reportedBy: '' }
  }

  #inTurn(work: () => Promise<void> | undefined): Promise<void> {
    this.#writes = this.#writes.then(work).catch((error: unknown) => {
      this.#options.log.warn('the note that a composite tool runs could not be written', { error: errorMessage(error) })
    })
    return this.#writes
  }
}

function recordId(session: string, stream: StreamId): string {
  return `${session}.${stream}`
}

function leftOf(value: JsonValue): Stored | undefined {
  if (!isObject(value)) return undefined
  const { request, steps, until, replica, reportedBy } = value
  if (typeof request !== 'string' && typeof request !== 'number') return undefined
  if (typeof steps !== 'number' || typeof until !== 'number' || typeof replica !== 'string' || typeof reportedBy !== 'string')
    return undefined
  return { request, steps, until, replica, reportedBy }
}
