import { randomUUID } from 'node:crypto'
import { sourceTypeOf } from '@thv/catalog/sources/fetch/source-config'
import type { Clock } from '@thv/kernel/clock'
import { ThvError } from '@thv/kernel/errors'
import type { Lease } from '../registry-store.ts'
import { fetchesOther } from './configuring.ts'
import type { SourceRow } from './draft.ts'

/** Times are of the monotonic clock. */
interface Turn {
  row: SourceRow
  dueAt: number
  manual: boolean
  /** Not over as long as `until` is to come, nor lost as long as it is here. */
  lease: { readonly token: string; until: number } | undefined
}

interface Claim {
  readonly owner: string
  readonly leaseMs: number
  readonly limit: number
  readonly except?: readonly string[]
}

/**
 * The order of syncs. In memory alone, since no other process uses the file: all sources are due after a start, and jumps of the wall
 * clock do not matter.
 */
export class SyncBoard {
  readonly #clock: Clock
  readonly #turns = new Map<string, Turn>()

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** After every change of the configuration. A source that is to be fetched in another way is due, whichever replica syncs it. */
  update(sources: ReadonlyMap<string, SourceRow>): void {
    for (const name of this.#turns.keys()) if (!sources.has(name)) this.#turns.delete(name)
    for (const [name, row] of sources) {
      if (sourceTypeOf(row.config) === 'managed') {
        this.#turns.delete(name)
        continue
      }
      const turn = this.#turns.get(name)
      if (!turn || turn.row.id !== row.id || fetchesOther(turn.row.config, row.config)) {
        this.#turns.set(name, { row, dueAt: this.#clock.monotonic(), manual: false, lease: undefined })
      } else turn.row = row
    }
  }

  claim({ owner, leaseMs, limit, except = [] }: Claim): { row: SourceRow; lease: Lease; manual: boolean }[] {
    const now = this.#clock.monotonic()
    const due = [...this.#turns.values()].filter((turn) => dueTime(turn) <= now && !except.includes(turn.row.config.name))
    due.sort((a, b) => a.dueAt - b.dueAt || (a.row.config.name < b.row.config.name ? -1 : 1))
    return due.slice(0, Math.max(0, limit)).map((turn) => {
      const { row, manual } = turn
      const token = randomUUID()
      turn.lease = { token, until: now + leaseMs }
      turn.manual = false
      return { row, manual, lease: { source: row.config.name, owner, token } }
    })
  }

  holds(lease: Lease): boolean {
    return this.#turns.get(lease.source)?.lease?.token === lease.token
  }

  renew(lease: Lease, leaseMs: number): boolean {
    const turn = this.#turns.get(lease.source)
    if (turn?.lease?.token !== lease.token) return false
    turn.lease.until = this.#clock.monotonic() + leaseMs
    return true
  }

  /** A request that came meanwhile is due at once. */
  finish(lease: Lease, nextInMs: number): void {
    const turn = this.#turns.get(lease.source)
    if (turn?.lease?.token !== lease.token) return
    turn.lease = undefined
    if (!turn.manual) turn.dueAt = this.#clock.monotonic() + nextInMs
  }

  request(name: string): void {
    const turn = this.#turns.get(name)
    if (!turn) throw new ThvError('bad_request', `source ${name} is managed: there is nothing to sync`)
    turn.manual = true
    turn.dueAt = Math.min(turn.dueAt, this.#clock.monotonic())
  }

  isSyncing(name: string): boolean {
    return (this.#turns.get(name)?.lease?.until ?? -Infinity) > this.#clock.monotonic()
  }

  nextInMs(except: readonly string[] = []): number | undefined {
    const turns = [...this.#turns.values()].filter(({ row }) => !except.includes(row.config.name))
    if (turns.length === 0) return undefined
    const first = Math.min(...turns.map(dueTime))
    return Math.max(0, first - this.#clock.monotonic())
  }
}

function dueTime({ dueAt, lease }: Turn): number {
  return Math.max(dueAt, lease?.until ?? -Infinity)
}
