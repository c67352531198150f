import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import type { Clock } from '@thv/kernel/clock'
import { errorMessage } from '@thv/kernel/errors'
import { jsonEqual } from '@thv/kernel/json'
import { type Conditions, createEventRecorder, type EventRecorder, getCondition, type KubeClient, runWithLease } from '@thv/kube'
import { virtualMcpServerType } from '@thv/resources/kinds/resource-types'
import { VirtualMCPServerCondition, VirtualMCPServerReason } from '@thv/resources/kinds/virtual-mcp-server/constants'
import type { VirtualMCPServer } from '@thv/resources/kinds/virtual-mcp-server/schema'
import type { Log } from '@thv/telemetry/log'
import { leaseName } from '@thv/vmcpconfig/discovery/discovery-rules'
import { movedNote, type ReportedStatus, reportedStatus, type StatusFacts } from './reported-status.ts'

export interface StatusReporterOptions {
  readonly client: KubeClient
  readonly namespace: string
  /** Of the VirtualMCPServer. */
  readonly name: string
  readonly clock: Clock
  readonly log: Log
  readonly signal: AbortSignal
  intervalMs(): number
  facts(): StatusFacts
}

const FIELD_MANAGER = 'vmcp'
/** Changes come in bursts, and a new backend is asked for its lists at once. */
const SETTLE_MS = 1_000
/** Times of health checks alone are written no more often than this many intervals. */
const QUIET_INTERVALS = 10

/** Writes the state of the backends into the status of the VirtualMCPServer. One replica at a time does, by a Lease. */
export class StatusReporter {
  readonly #options: StatusReporterOptions
  readonly #identity = `${hostname()}-${randomUUID().slice(0, 8)}`
  readonly #events: EventRecorder
  #moved: StatusFacts['moved'] = []
  #wake: (() => void) | undefined
  #written: { readonly status: ReportedStatus; readonly at: number } | undefined

  constructor(options: StatusReporterOptions) {
    this.#options = options
    const { client, clock, signal, log } = options
    this.#events = createEventRecorder({
      ...{ client, clock, signal, controller: 'toolhive.stacklok.dev/vmcp', instance: this.#identity },
      onError: (error) => log.warn('could not write an Event', { error: errorMessage(error) }),
    })
  }

  /** Something that is reported may have changed. */
  changed(): void {
    this.#wake?.()
  }

  /** Runs until the signal aborts. */
  async run(): Promise<void> {
    const { client, namespace, name, clock, log, signal } = this.#options
    const lease = { client, namespace, name: leaseName(name), identity: this.#identity }
    await runWithLease({ ...lease, clock, signal, log, onStart: (held) => this.#report(held) })
  }

  async #report(signal: AbortSignal): Promise<void> {
    const { clock, log, intervalMs } = this.#options
    this.#written = undefined
    while (!signal.aborted) {
      try {
        await this.#write(signal)
      } catch (error) {
        if (!signal.aborted) log.warn('could not write the status; trying again', { error: errorMessage(error) })
      }
      const woken = new AbortController()
      this.#wake = () => woken.abort()
      await clock.sleep(intervalMs() * (1 - Math.random() / 10), AbortSignal.any([signal, woken.signal])).catch(() => undefined)
      if (woken.signal.aborted) await clock.sleep(SETTLE_MS, signal).catch(() => undefined)
    }
  }

  async #write(signal: AbortSignal): Promise<void> {
    const { client, namespace, name, clock, facts, intervalMs } = this.#options
    const current = await client.tryGet(virtualMcpServerType, { namespace, name }, { signal })
    if (current === undefined) return
    const before = current.status?.conditions as Conditions | undefined
    const known = facts()
    const status = reportedStatus(known, before, new Date(clock.now()).toISOString())
    this.#tell(current, { before, after: status.conditions, moved: known.moved })
    const isQuiet = this.#written !== undefined && clock.monotonic() - this.#written.at < QUIET_INTERVALS * intervalMs()
    if (isQuiet && this.#written !== undefined && jsonEqual(withoutTimes(status), withoutTimes(this.#written.status))) return
    const { apiVersion, kind } = current
    const object = { apiVersion, kind, metadata: { name, namespace }, status } as unknown as VirtualMCPServer
    await client.apply(virtualMcpServerType, object, { fieldManager: FIELD_MANAGER, force: true, subresource: 'status', signal })
    this.#written = { status, at: clock.monotonic() }
  }

  /** Each conflict and each move once. */
  #tell(object: VirtualMCPServer, { before, after, moved }: Telling): void {
    const type = VirtualMCPServerCondition.ToolConflicts
    const conflicts = getCondition(after, type)
    const isNews = conflicts?.status === 'True' && conflicts.message !== getCondition(before, type)?.message
    if (isNews) this.#record(object, conflicts.reason, conflicts.message)
    const note = moved === this.#moved ? undefined : movedNote(moved)
    this.#moved = moved
    if (note !== undefined) this.#record(object, VirtualMCPServerReason.NamesMoved, note)
  }

  #record(object: VirtualMCPServer, reason: string, note: string): void {
    this.#events.record(virtualMcpServerType, object, { type: 'Warning', reason, note, action: 'Aggregate' })
  }
}

interface Telling {
  readonly before: Conditions | undefined
  readonly after: Conditions
  readonly moved: StatusFacts['moved']
}

function withoutTimes({ discoveredBackends, ...rest }: ReportedStatus) {
  return { ...rest, discoveredBackends: discoveredBackends.map(({ lastHealthCheck: _, ...backend }) => backend) }
}
