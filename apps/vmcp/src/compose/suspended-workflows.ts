import { createHash, randomUUID } from 'node:crypto'
import type { Clock, Timer } from '@thv/kernel/clock'
import type { StateSeal } from '@thv/mcp/bridge/state-seal'
import type { JsonObject } from '@thv/mcp/json-rpc'
import type { SuspendedWorkflow } from '@thv/workflow/run-workflow'

/** The request that a workflow belongs to: only the same one goes on with it. */
export interface Belonging {
  readonly principal: string
  /** That limits count for. */
  readonly party: string
  readonly tool: string
  readonly arguments: JsonObject
}

export interface Suspension {
  readonly state: SuspendedWorkflow
  /** Of `input_required`, without the state. */
  readonly inputRequests: JsonObject
}

export type Resumption = Suspension & { readonly until: number }

/** Where workflows wait for the answers of modern clients. Each goes on once: a state that was used is void. */
export interface WaitingWorkflows {
  /** The state for the client; undefined where there is no room. */
  keep(belonging: Belonging, suspension: Suspension, until?: number): Promise<string | undefined>
  /** Undefined for every state that is not one of this client, this call and this moment. */
  take(belonging: Belonging, requestState: unknown): Promise<Resumption | undefined>
  close(): Promise<void>
}

interface Kept extends Suspension {
  readonly owner: string
  readonly party: string
  readonly bytes: number
  readonly until: number
  readonly timer: Timer
}

export const KEPT_MS = 600_000
const MAX_KEPT = 1_024
const MAX_PER_PARTY = 16
const MAX_BYTES = 64 * 1_024 * 1_024

/** Workflows that wait in the memory of this process. */
export class SuspendedWorkflows implements WaitingWorkflows {
  readonly #clock: Clock
  readonly #seal: StateSeal
  readonly #kept = new Map<string, Kept>()
  #bytes = 0

  constructor(clock: Clock, seal: StateSeal) {
    this.#clock = clock
    this.#seal = seal
  }

  get size(): number {
    return this.#kept.size
  }

  async keep(belonging: Belonging, suspension: Suspension, until = this.#clock.now() + KEPT_MS): Promise<string | undefined> {
    const bytes = Buffer.byteLength(JSON.stringify(suspension))
    const { party } = belonging
    const own = [...this.#kept.values()].filter((kept) => kept.party === party).length
    if (this.#kept.size >= MAX_KEPT || own >= MAX_PER_PARTY || this.#bytes + bytes > MAX_BYTES) return undefined
    const id = randomUUID()
    const timer = this.#clock.setTimer(Math.max(0, until - this.#clock.now()), () => this.#remove(id))
    this.#kept.set(id, { ...suspension, owner: ownerOf(belonging), party, bytes, until, timer })
    this.#bytes += bytes
    return this.#seal.seal({ id })
  }

  async take(belonging: Belonging, requestState: unknown): Promise<Resumption | undefined> {
    const id = this.#seal.open(requestState)?.['id']
    const kept = typeof id === 'string' ? this.#kept.get(id) : undefined
    if (typeof id !== 'string' || kept === undefined || kept.owner !== ownerOf(belonging)) return undefined
    this.#remove(id)
    return kept
  }

  async close(): Promise<void> {
    for (const id of [...this.#kept.keys()]) this.#remove(id)
  }

  #remove(id: string): void {
    const kept = this.#kept.get(id)
    if (kept === undefined) return
    this.#kept.delete(id)
    this.#bytes -= kept.bytes
    kept.timer.cancel()
  }
}

/** Of the request: a retry must be the same call of the same principal. */
export function ownerOf({ principal, tool, arguments: args }: Belonging): string {
  return createHash('sha256')
    .update(JSON.stringify([principal, tool, args]))
    .digest('base64url')
}
