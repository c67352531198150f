import type { McpResource } from '@thv/catalog/discover/objects/mcp-resource'
import type { KubernetesSource } from '@thv/catalog/sources/fetch/kubernetes-source'
import type { SourceConfig } from '@thv/catalog/sources/fetch/source-config'
import { parseDuration } from '@thv/kernel/duration'
import { askTools } from './ask-tools.ts'
import type { ConnectCluster } from './cluster-connection.ts'
import { Introspection, type IntrospectionOptions } from './introspection.ts'

export interface IntrospectionsOptions extends Pick<IntrospectionOptions, 'clock' | 'random' | 'log'> {
  readonly connect: ConnectCluster
  readonly onChange: (source: string, resource: McpResource) => void
}

/** One for each source that asks for it. */
export interface Introspections extends AsyncDisposable {
  /** Exactly these; those that stay as they are keep what they know. */
  set(sources: readonly SourceConfig[]): void
  of(source: string): Introspection | undefined
}

const TIMEOUT = '10s'

export function createIntrospections({ connect, onChange, ...shared }: IntrospectionsOptions): Introspections {
  const open = new Map<string, { readonly identity: string; readonly introspection: Introspection }>()
  const closing = new Set<Promise<void>>()

  function drop(name: string): void {
    const closed = open
      .get(name)
      ?.introspection.close()
      .finally(() => closing.delete(closed as Promise<void>))
    open.delete(name)
    if (closed) closing.add(closed)
  }

  function start(name: string, block: KubernetesSource): Introspection {
    const timeoutMs = parseDuration(block.introspect?.timeout ?? TIMEOUT)
    return new Introspection({
      ...shared,
      ask: async (url, signal) => await askTools(url, signal, { timeoutMs, allowLoopback: await isLocal(connect, block) }),
      onChange: (resource) => onChange(name, resource),
    })
  }

  return {
    set(sources) {
      const wanted = new Map(
        sources.flatMap(({ name, kubernetes }) => (kubernetes?.introspect?.enabled === true ? [[name, kubernetes] as const] : [])),
      )
      for (const [name, { identity }] of open) if (JSON.stringify(wanted.get(name)) !== identity) drop(name)
      for (const [name, block] of wanted)
        if (!open.has(name)) open.set(name, { identity: JSON.stringify(block), introspection: start(name, block) })
    },
    of: (name) => open.get(name)?.introspection,
    async [Symbol.asyncDispose]() {
      for (const name of [...open.keys()]) drop(name)
      await Promise.all(closing)
    },
  }
}

/** Servers of a cluster on this machine have loopback addresses. */
async function isLocal(connect: ConnectCluster, block: KubernetesSource): Promise<boolean> {
  const { client, server } = await connect(block)
  await client.close()
  const host = server === undefined ? '' : new URL(server).hostname
  return host === 'localhost' || host === '[::1]' || host.startsWith('127.')
}
