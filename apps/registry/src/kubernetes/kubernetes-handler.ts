import { createHash } from 'node:crypto'
import { discoveryOf } from '@thv/catalog/discover/discover'
import type { ExportedEntry } from '@thv/catalog/discover/entry/exported-entry'
import type { KnownServers } from '@thv/catalog/discover/entry/known-servers'
import { type ExportWarning, warningText } from '@thv/catalog/discover/objects/export-warning'
import { refText } from '@thv/catalog/discover/objects/object-ref'
import { awayFromPlace } from '@thv/catalog/sources/fetch/fetch-address'
import type { KubernetesSource } from '@thv/catalog/sources/fetch/kubernetes-source'
import { oncePerAttempt } from '@thv/catalog/sources/fetch/once-per-attempt'
import type { FetchContext, FetchedEntry, FetchProblem, FetchResult, RegistryHandler } from '@thv/catalog/sources/fetch/registry-handler'
import type { SourceConfig } from '@thv/catalog/sources/fetch/source-config'
import { sourceHash } from '@thv/catalog/sources/fetch/source-hash'
import { validateSource } from '@thv/catalog/sources/fetch/validate-source'
import { ThvError } from '@thv/kernel/errors'
import type { KubeClient } from '@thv/kube/client/client'
import { readCluster } from './cluster-reader.ts'
import type { ClusterWatch, WatchReading } from './cluster-watch.ts'
import { EntrySet } from './entry-set.ts'
import { exportOptionsOf } from './export-options.ts'
import type { Introspection } from './introspection.ts'

export interface KubernetesHandlerDeps {
  /** Servers of the other sources of the registries that list this one. */
  readonly known: (source: string) => Promise<KnownServers>
  readonly connect: (source: KubernetesSource) => Promise<KubeClient>
  /** Whether this replica leads. */
  readonly mayRead?: (source: string) => boolean
  /** The watches of a source that has some. */
  readonly watchOf?: (source: string) => ClusterWatch | undefined
  readonly introspectionOf?: (source: string) => Introspection | undefined
}

const MAX_LOGGED = 20

/** One from a list has no name: all of it is compared with the store. */
type Reading = Omit<WatchReading, 'id'> & { readonly id?: string }

/** Entries of a live cluster, read at every attempt. A cluster without any is legal. */
export function createKubernetesHandler(deps: KubernetesHandlerDeps): RegistryHandler {
  const { known, connect, mayRead = () => true, watchOf, introspectionOf } = deps
  /** The export now: of the watches where there are some, else read from the cluster. */
  async function read(source: SourceConfig, context: FetchContext): Promise<Reading> {
    const block = blockOf(source)
    const routesWereReadable = context.state?.['routes'] === true
    const servers = await known(source.name)
    const watch = watchOf?.(source.name)
    if (watch !== undefined) {
      const reading = await awayFromPlace(context, () => watch.read(servers, { signal: context.signal, since: storedReading(context) }))
      if (!reading.routesReadable && routesWereReadable)
        throw new ThvError('source_failed', 'HTTPRoutes could be listed before and may not be now')
      return reading
    }
    const client = await connect(block)
    const { objects, routesReadable, notes } = await awayFromPlace(context, async () => {
      try {
        return await readCluster({ client, clock: context.clock, signal: context.signal, source: block, routesWereReadable })
      } finally {
        await client.close()
      }
    })
    const discovery = discoveryOf(objects, exportOptionsOf(block, introspectionOf?.(source.name)?.toolsOf), servers)
    const { entries, warnings } = discovery.result()
    const all = new EntrySet()
    for (const entry of entries) all.add(entry)
    return {
      ...{ content: { entries }, warnings, count: entries.length, digest: all.digest() },
      ...{ routesReadable, notes, exported: () => discovery.exported() },
    }
  }

  async function fetchRegistry(source: SourceConfig, context: FetchContext): Promise<FetchResult> {
    refuseFollower(source.name)
    const reading = await read(source, context)
    refuseFollower(source.name)
    introspectionOf?.(source.name)?.want(reading.exported())
    const { content, count, digest, id, warnings } = reading
    if (count > context.limits.maxEntries)
      throw new ThvError('source_limit', `the cluster exports more than ${context.limits.maxEntries} entries`)
    const told = logWarnings(warnings, reading.notes, context)
    const hash = sourceHash(source, [digest])
    const state = { routes: reading.routesReadable, told, ...(id !== undefined && { reading: id }) }
    const problems = problemsOf(warnings)
    if ('entries' in content) return { kind: 'full', entries: content.entries.map(fetchedEntry), hash, state, problems }
    const { entries, gone } = content.changes
    if (entries.length + gone.length === 0) return { kind: 'unchanged', hash, state, problems }
    return { kind: 'delta', entries: entries.map(fetchedEntry), gone, hash, state, problems }
  }

  function refuseFollower(source: string): void {
    if (!mayRead(source)) throw new ThvError('lease_lost', `another replica reads the cluster of source ${source}`)
  }

  const once = (source: SourceConfig, context: FetchContext) => oncePerAttempt(context, 'kubernetes', () => fetchRegistry(source, context))
  return {
    validate: validateSource,
    currentHash: async (source, context) => (await once(source, context)).hash,
    fetchRegistry: once,
  }
}

function blockOf({ name, kubernetes }: SourceConfig): KubernetesSource {
  if (kubernetes === undefined) throw new TypeError(`source ${name} is not of type kubernetes`)
  return kubernetes
}

/** The reading that the store has; the state is written with its entries or not at all. */
function storedReading({ state }: FetchContext): string | undefined {
  const reading = state?.['reading']
  return typeof reading === 'string' ? reading : undefined
}

function fetchedEntry(entry: ExportedEntry): FetchedEntry {
  return { ...entry, text: entry.text, claims: entry.claims ?? null }
}

/** A list that says the same is the same object, and is read once. */
const knownProblems = new WeakMap<readonly ExportWarning[], readonly FetchProblem[]>()

function problemsOf(warnings: readonly ExportWarning[]): readonly FetchProblem[] {
  const problems = knownProblems.get(warnings) ?? warnings.map(problemOf)
  knownProblems.set(warnings, problems)
  return problems
}

function problemOf(warning: ExportWarning): FetchProblem {
  const { reason, message, object, level } = warning
  return { entry: refText(object), pointer: '', message: `${reason}: ${message}`, severity: level === 'info' ? 'warning' : 'dropped' }
}

/** Warnings are logged when they are others than after the last sync. Gives what the next sync compares with. */
function logWarnings(warnings: readonly ExportWarning[], notes: readonly string[], { state, warn }: FetchContext): string {
  const lines = [...notes, ...warnings.filter(({ level }) => level === 'warning').map(warningText)]
  const told = createHash('sha256').update(JSON.stringify(lines)).digest('base64url')
  if (state?.['told'] === told) return told
  for (const line of lines.slice(0, MAX_LOGGED)) warn(line)
  if (lines.length > MAX_LOGGED) warn(`and ${lines.length - MAX_LOGGED} more`)
  return told
}
