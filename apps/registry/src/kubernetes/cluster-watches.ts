import { statSync } from 'node:fs'
import type { KindState } from '@thv/catalog/cluster/kind-watch'
import type { ExportOptions } from '@thv/catalog/discover/objects/export-options'
import type { KubernetesSource } from '@thv/catalog/sources/fetch/kubernetes-source'
import type { SourceConfig } from '@thv/catalog/sources/fetch/source-config'
import type { Clock } from '@thv/kernel/clock'
import { parseDuration } from '@thv/kernel/duration'
import type { KubeClient } from '@thv/kube'
import { ClusterWatch } from './cluster-watch.ts'
import { exportOptionsOf } from './export-options.ts'

export interface ClusterWatchesOptions {
  readonly clock: Clock
  readonly random: () => number
  readonly connect: (source: KubernetesSource) => Promise<KubeClient>
  /** The export of this source may be another than at its last sync. */
  readonly onChange: (source: string) => void
  readonly onKind?: (source: string, kind: string, state: KindState) => void
  readonly probeMs?: number
  /** Tools of running servers, where the source asks for them. */
  readonly toolsOf?: (source: string) => ExportOptions['toolsOf']
}

/** The watches of the sources that ask for them. */
export interface ClusterWatches extends AsyncDisposable {
  /** Exactly these; those that stay as they are stay open. A kubeconfig that has changed is read again. */
  set(sources: readonly SourceConfig[]): void
  of(source: string): ClusterWatch | undefined
}

const INTERVAL_MS = 30_000
const DEBOUNCE = '1s'

export function createClusterWatches(options: ClusterWatchesOptions): ClusterWatches {
  const open = new Map<string, { readonly identity: string; readonly watch: ClusterWatch }>()
  const closing = new Set<Promise<void>>()

  function drop(name: string): void {
    const watch = open.get(name)?.watch
    open.delete(name)
    const closed = watch?.close().finally(() => closing.delete(closed as Promise<void>))
    if (closed) closing.add(closed)
  }

  function start({ name, kubernetes = {}, intervalMs = INTERVAL_MS }: SourceConfig): ClusterWatch {
    const { clock, random, connect, onChange, onKind, probeMs, toolsOf } = options
    return new ClusterWatch({
      source: kubernetes,
      exportOptions: exportOptionsOf(kubernetes, toolsOf?.(name)),
      intervalMs,
      debounceMs: parseDuration(kubernetes.watch?.debounceInterval ?? DEBOUNCE),
      clock,
      random,
      connect: () => connect(kubernetes),
      onChange: () => onChange(name),
      onKind: (kind, state) => onKind?.(name, kind, state),
      ...(probeMs !== undefined && { probeMs }),
    })
  }

  return {
    set(sources) {
      const wanted = new Map(sources.filter(({ kubernetes }) => kubernetes?.watch?.enabled === true).map((source) => [source.name, source]))
      for (const [name, { identity }] of open) {
        const source = wanted.get(name)
        if (source === undefined || identityOf(source) !== identity) drop(name)
      }
      for (const [name, source] of wanted) if (!open.has(name)) open.set(name, { identity: identityOf(source), watch: start(source) })
    },
    of: (name) => open.get(name)?.watch,
    async [Symbol.asyncDispose]() {
      for (const name of [...open.keys()]) drop(name)
      await Promise.all(closing)
    },
  }
}

function identityOf({ kubernetes, intervalMs }: SourceConfig): string {
  const path = kubernetes?.kubeconfig?.path
  const changed = path === undefined ? undefined : statSync(path, { throwIfNoEntry: false })?.mtimeMs
  return JSON.stringify([kubernetes, intervalMs, changed])
}
