import type { EntryStatus } from '@thv/catalog/catalog-entry'
import type { Claims } from '@thv/catalog/sources/fetch/source-config'
import type { ErrorCode } from '@thv/kernel/errors'
import { jsonEqual } from '@thv/kernel/json'

/** One step of a random history. `own` is the managed source, all others are synced. */
export type Step =
  | { readonly op: 'publish'; readonly source: string; readonly row: ModelInput }
  | { readonly op: 'replace'; readonly source: string; readonly row: ModelInput }
  | {
      readonly op: 'status'
      readonly source: string
      readonly name: string
      readonly version?: string
      readonly status: EntryStatus
      readonly statusMessage?: string
    }
  | { readonly op: 'claims'; readonly source: string; readonly name: string; readonly claims?: Claims }
  | { readonly op: 'put' | 'drop' | 'fail'; readonly source: string }
  | {
      readonly op: 'sync'
      readonly source: string
      readonly upserts: readonly ModelInput[]
      readonly gone: readonly { name: string; version: string }[]
    }

export interface ModelInput {
  readonly name: string
  readonly version: string
  readonly text: string
  readonly status?: EntryStatus
  readonly statusMessage?: string
  readonly claims?: Claims
}

export interface ModelRow {
  readonly source: string
  readonly name: string
  readonly version: string
  readonly text: string
  readonly status: EntryStatus
  readonly statusMessage: string | undefined
  readonly claims: Claims | undefined
}

export const MANAGED = 'own'

/** The store as plainly as it can be said: what a history of steps must lead to. No times, no revisions, no leases. */
export class ModelStore {
  readonly sources = new Set<string>()
  readonly #rows = new Map<string, ModelRow>()

  rows(): ModelRow[] {
    return [...this.#rows.values()]
  }

  served(source: string): number {
    return this.rows().filter((row) => row.source === source && row.status !== 'deleted').length
  }

  /** Gives the code of the error with which the step is refused. */
  apply(step: Step): ErrorCode | undefined {
    if (step.op === 'put') {
      this.sources.add(step.source)
      return undefined
    }
    if (!this.sources.has(step.source)) return 'not_found'
    if (step.op === 'drop') {
      this.sources.delete(step.source)
      for (const [key, row] of this.#rows) if (row.source === step.source) this.#rows.delete(key)
      return undefined
    }
    const synced = step.op === 'fail' || step.op === 'sync'
    if (synced === (step.source === MANAGED)) return 'bad_request'
    switch (step.op) {
      case 'sync':
        return this.#sync(step)
      case 'publish':
        return this.#publish(step.source, step.row)
      case 'replace':
        return this.#replace(step.source, step.row)
      case 'status':
        return this.#status(step)
      case 'claims':
        return this.#claims(step)
      default:
        return undefined
    }
  }

  #publish(source: string, row: ModelInput): ErrorCode | undefined {
    const old = this.#find(source, row)
    if (old && old.status !== 'deleted') return 'version_exists'
    const [sibling] = this.#of(source, row.name)
    if (sibling && row.claims && !jsonEqual(sibling.claims ?? null, row.claims)) return 'conflict'
    this.#set({
      source,
      name: row.name,
      version: row.version,
      text: row.text,
      status: row.status ?? 'active',
      statusMessage: row.statusMessage,
      claims: sibling ? sibling.claims : row.claims,
    })
    return undefined
  }

  #replace(source: string, row: ModelInput): ErrorCode | undefined {
    const old = this.#find(source, row)
    if (!old) return 'not_found'
    if (row.claims && !jsonEqual(old.claims ?? null, row.claims)) return 'conflict'
    const status = row.status ? { status: row.status, statusMessage: row.statusMessage } : {}
    this.#set({ ...old, text: row.text, ...status })
    return undefined
  }

  #status(step: Extract<Step, { op: 'status' }>): ErrorCode | undefined {
    const { source, name, version, status, statusMessage } = step
    const all = this.#of(source, name).filter((row) => version === undefined || row.version === version)
    if (all.length === 0) return 'not_found'
    for (const row of all) {
      if (version === undefined && status === 'deleted' && row.status === 'deleted') continue
      this.#set({ ...row, status, statusMessage })
    }
    return undefined
  }

  #claims({ source, name, claims }: Extract<Step, { op: 'claims' }>): ErrorCode | undefined {
    if (this.#of(source, name).length === 0) return 'not_found'
    for (const row of this.#of(source, name)) this.#set({ ...row, claims })
    return undefined
  }

  #sync({ source, upserts, gone }: Extract<Step, { op: 'sync' }>): undefined {
    for (const { name, version, text, status = 'active', statusMessage } of upserts) {
      this.#set({ source, name, version, text, status, statusMessage, claims: undefined })
    }
    for (const { name, version } of gone) {
      const row = this.#find(source, { name, version })
      if (row && row.status !== 'deleted') this.#set({ ...row, status: 'deleted', statusMessage: undefined })
    }
  }

  #of(source: string, name: string): ModelRow[] {
    return this.rows().filter((row) => row.source === source && row.name === name)
  }

  #find(source: string, { name, version }: { name: string; version: string }): ModelRow | undefined {
    return this.#rows.get(JSON.stringify([source, name, version]))
  }

  #set(row: ModelRow): void {
    this.#rows.set(JSON.stringify([row.source, row.name, row.version]), row)
  }
}
