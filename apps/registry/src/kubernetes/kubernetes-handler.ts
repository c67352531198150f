import { createHash } from 'node:crypto'
import { discover } from '@thv/catalog/discover/discover'
import type { DiscoveryResult } from '@thv/catalog/discover/discovery'
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
import { createKubeClient, type KubeClient } from '@thv/kube/client/client'
import { defaultConnection } from '@thv/kube/config/default-connection'
import { readCluster } from './cluster-reader.ts'

export interface KubernetesHandlerDeps {
  /** Servers of the other sources of the registries that list this one. */
  readonly known: (source: string) => Promise<KnownServers>
  /** For tests; else by the source's kubeconfig or as the pod that this is. */
  readonly connect?: (source: KubernetesSource) => Promise<KubeClient>
}

const MAX_LOGGED = 20

/** Entries of a live cluster, read at every attempt. A cluster without any is legal. */
export function createKubernetesHandler({ known, connect = connectCluster }: KubernetesHandlerDeps): RegistryHandler {
  async function fetchRegistry(source: SourceConfig, context: FetchContext): Promise<FetchResult> {
    const block = blockOf(source)
    const routesWereReadable = context.state?.['routes'] === true
    const client = await connect(block)
    const reading = await awayFromPlace(context, async () => {
      try {
        return await readCluster({ client, clock: context.clock, signal: context.signal, source: block, routesWereReadable })
      } finally {
        await client.close()
      }
    })
    const { crossNamespaceGateway = 'accepted', clusterName } = block
    const options = { mode: 'server', crossNamespaceGateway, ...(clusterName === undefined ? {} : { clusterName }) } as const
    const result = discover(reading.objects, options, await known(source.name))
    if (result.entries.length > context.limits.maxEntries)
      throw new ThvError('source_limit', `the cluster exports more than ${context.limits.maxEntries} entries`)
    const told = logWarnings(result, reading.notes, context)
    return {
      kind: 'full',
      entries: result.entries.map(fetchedEntry),
      hash: sourceHash(source, result.entries.map(canonicalText)),
      state: { routes: reading.routesReadable, told },
      problems: result.warnings.map(problemOf),
    }
  }

  const once = (source: SourceConfig, context: FetchContext) => oncePerAttempt(context, 'kubernetes', () => fetchRegistry(source, context))
  return {
    validate: validateSource,
    currentHash: async (source, context) => (await once(source, context)).hash,
    fetchRegistry: once,
  }
}

async function connectCluster({ kubeconfig }: KubernetesSource): Promise<KubeClient> {
  return createKubeClient(await defaultConnection({ kubeconfig: kubeconfig?.path, context: kubeconfig?.context }))
}

function blockOf({ name, kubernetes }: SourceConfig): KubernetesSource {
  if (kubernetes === undefined) throw new TypeError(`source ${name} is not of type kubernetes`)
  return kubernetes
}

function fetchedEntry({ claims, ...entry }: ExportedEntry): FetchedEntry {
  return { ...entry, claims: claims ?? null }
}

function canonicalText({ text, status, statusMessage, publishedAt, claims }: ExportedEntry): string {
  return JSON.stringify([text, status ?? '', statusMessage ?? '', publishedAt ?? '', claims ?? null])
}

function problemOf(warning: ExportWarning): FetchProblem {
  const { reason, message, object, level } = warning
  return { entry: refText(object), pointer: '', message: `${reason}: ${message}`, severity: level === 'info' ? 'warning' : 'dropped' }
}

/** Warnings are logged when they are others than after the last sync. Gives what the next sync compares with. */
function logWarnings({ warnings }: DiscoveryResult, notes: readonly string[], { state, warn }: FetchContext): string {
  const lines = [...notes, ...warnings.filter(({ level }) => level === 'warning').map(warningText)]
  const told = createHash('sha256').update(JSON.stringify(lines)).digest('base64url')
  if (state?.['told'] === told) return told
  for (const line of lines.slice(0, MAX_LOGGED)) warn(line)
  if (lines.length > MAX_LOGGED) warn(`and ${lines.length - MAX_LOGGED} more`)
  return told
}
