import { randomUUID } from 'node:crypto'
import type { Clock } from '@thv/kernel/clock'
import { errorMessage } from '@thv/kernel/errors'
import type { StateSeal } from '@thv/mcp/bridge/state-seal'
import { isObject } from '@thv/mcp/json-rpc'
import type { JsonValue, SessionStore } from '@thv/store/session-store'
import type { Log } from '@thv/telemetry/log'
import type { SuspendedWorkflow } from '@thv/workflow/run-workflow'
import { type Belonging, KEPT_MS, ownerOf, type Resumption, type Suspension, type WaitingWorkflows } from './suspended-workflows.ts'

export interface SharedWorkflowsOptions {
  readonly store: SessionStore<JsonValue>
  readonly seal: StateSeal
  readonly clock: Clock
  readonly log: Log
}

const MAX_BYTES = 1_024 * 1_024

/** Workflows that wait in a store of all replicas: any of them goes on, once. */
export class SharedWorkflows implements WaitingWorkflows {
  readonly #options: SharedWorkflowsOptions

  constructor(options: SharedWorkflowsOptions) {
    this.#options = options
  }

  async keep(belonging: Belonging, suspension: Suspension, until = this.#options.clock.now() + KEPT_MS): Promise<string | undefined> {
    const { store, seal, clock, log } = this.#options
    const text = JSON.stringify(suspension)
    if (Buffer.byteLength(text) > MAX_BYTES) return undefined
    const { principal: owner, party } = belonging
    const id = randomUUID()
    const value = { of: ownerOf(belonging), until, text }
    try {
      const outcome = await store.create({ id, owner, party, value }, Math.max(1, until - clock.now()))
      return outcome === 'created' ? seal.seal({ id }) : undefined
    } catch (error) {
      log.warn('a workflow that asks could not be stored', { error: errorMessage(error) })
      return undefined
    }
  }

  async take(belonging: Belonging, requestState: unknown): Promise<Resumption | undefined> {
    const { store, seal, clock, log } = this.#options
    const id = seal.open(requestState)?.['id']
    if (typeof id !== 'string') return undefined
    const ref = { id, owner: belonging.principal }
    try {
      const value = (await store.get(ref))?.value
      if (!isObject(value) || value['of'] !== ownerOf(belonging)) return undefined
      const { until, text } = value
      // Of two requests with one state the first wins.
      if (typeof until !== 'number' || until < clock.now() || typeof text !== 'string' || !(await store.delete(ref))) return undefined
      const { state, inputRequests } = JSON.parse(text) as { state: SuspendedWorkflow; inputRequests: Suspension['inputRequests'] }
      return { state, inputRequests, until }
    } catch (error) {
      log.warn('a workflow that waits could not be read', { error: errorMessage(error) })
      return undefined
    }
  }

  async close(): Promise<void> {
    await this.#options.store.close()
  }
}
