import type { Clock } from '@thv/kernel/clock'
import { formatDuration } from '@thv/kernel/duration'
import { ThvError } from '@thv/kernel/errors'
import { runInTurns } from '@thv/kernel/steps'
import type { RegistryRecord, RegistryStore, SourceRecord, StoreRevision } from '../store/registry-store.ts'
import { endsWithin } from '../sync/waker.ts'
import { type Catalog, createCatalog } from '../views/catalog.ts'
import type { SourceContent } from './view-layout.ts'

export interface FollowerOptions {
  readonly store: RegistryStore
  readonly clock: Clock
  readonly pause: () => Promise<void>
  readonly signal: AbortSignal
  /** Sources or registries are others than before. */
  readonly onStructure: () => void
}

/** The known state of the store. A failed read is repeated by the next `follow`; earlier data stay. */
export interface StoreFollower {
  readonly catalog: Catalog
  readonly sources: readonly SourceRecord[]
  readonly registries: readonly RegistryRecord[]
  contentOf(source: string): SourceContent
  /** Reads what is new since the last time, and the statuses of sources if asked to. */
  follow(statusToo: boolean): Promise<Followed>
}

export interface Followed {
  /** Everything up to this is known. */
  readonly revision: StoreRevision
  /** Another than the last time. */
  readonly moved: boolean
}

/** A store that has not told its revision by then is as good as lost. Statements of a sync may take longer. */
const LOOK_MS = 5_000
/** So often it reads what was written while it read. */
const MAX_ROUNDS = 5

export function createStoreFollower({ store, clock, pause, signal, onStructure }: FollowerOptions): StoreFollower {
  const catalog = createCatalog()
  let known: StoreRevision = { data: 0, structure: -1 }
  let sources: readonly SourceRecord[] = []
  let registries: readonly RegistryRecord[] = []
  let ids = new Map<string, number>()
  let looking: Promise<StoreRevision> | undefined

  async function follow(statusToo: boolean): Promise<Followed> {
    const first = await look()
    if (first.structure !== known.structure) await readStructure()
    else if (statusToo) sources = await store.sources()
    const revision = first.data === known.data ? first : await readEntries(first)
    await runInTurns(catalog.settle(), { pause, signal })
    const moved = revision.data !== known.data || revision.structure !== known.structure
    known = revision
    return { revision, moved }
  }

  /** One question at a time: those to a store that is silent would only fill its queue. */
  async function look(): Promise<StoreRevision> {
    looking ??= store.revision().finally(() => {
      looking = undefined
    })
    const answer = looking
    if (await endsWithin(clock, LOOK_MS, answer)) return answer
    throw new ThvError('store_unavailable', `the store did not answer within ${formatDuration(LOOK_MS)}`)
  }

  async function readStructure(): Promise<void> {
    sources = await store.sources()
    registries = await store.registries()
    const now = new Map(sources.map((source) => [source.config.name, source.id]))
    const gone = new Set([...ids].filter(([name, id]) => now.get(name) !== id).map(([name]) => name))
    await runInTurns(catalog.dropSources(gone), { pause, signal })
    ids = now
    onStructure()
  }

  /**
   * Gives the revision up to which everything has come. Rows that somebody writes while others are read may be left to the next reading;
   * so it reads on until there is none, to serve no revision in part.
   */
  async function readEntries(first: StoreRevision): Promise<StoreRevision> {
    let { data: after } = known
    let read = first
    for (let round = 1; ; round++) {
      await readAfter(after)
      const now = await look()
      // Sources that are new since are not known here: their rows come with the next structure.
      if (now.data === read.data || now.structure !== first.structure || round === MAX_ROUNDS) return read
      after = read.data
      read = now
    }
  }

  async function readAfter(after: number): Promise<void> {
    for await (const batch of store.entriesAfter(after, signal)) {
      for (const entry of batch) if (ids.has(entry.source)) catalog.add(entry)
      await pause()
      signal.throwIfAborted()
    }
  }

  return {
    catalog,
    get sources() {
      return sources
    },
    get registries() {
      return registries
    },
    contentOf: (source) => ({ id: ids.get(source), ...catalog.newest(source) }),
    follow,
  }
}
