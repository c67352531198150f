import { type DocumentReading, readDocument } from '@thv/catalog/merge/read-document'
import { configMapText } from '@thv/catalog/sources/config-map/config-map-text'
import { type ConfigMap, compareResourceVersions, configMaps, formatKey, type KubeClient, keyOf } from '@thv/kube'
import type { CanonicalRegistryEntry } from '@thv/resources/kinds/mcp-registry/normalise'
import { configMapPages } from './config-map-pages.ts'
import { selectorText } from './selected-maps.ts'

/** One selected ConfigMap, read. */
export interface ReadMap {
  readonly name: string
  readonly annotations: Readonly<Record<string, string>>
  readonly reading: DocumentReading
}

type SelectorEntry = CanonicalRegistryEntry & { readonly configMapSelector: NonNullable<CanonicalRegistryEntry['configMapSelector']> }

/** Above this a list is cheaper than a request for each. */
const LIST_ABOVE = 8
const MAX_BYTES = 64 * 1024 * 1024

/** How much data one registry may select, counted down over its entries: all of it is in memory at once. */
export interface SelectionBudget {
  left: number
}

export const SELECTION_BYTES = 32 * 1024 * 1024

export interface ReadOptions {
  readonly signal: AbortSignal
  readonly budget: SelectionBudget
}

const TOO_MUCH: DocumentReading = { ok: false, problem: 'the registry selects more than 32 MiB of data' }

interface Kept {
  readonly version: string
  readonly reading: DocumentReading
  readonly bytes: number
}

/** Reads each version of a ConfigMap once: all of a selector by a list, changed ones one by one. Keeps parsed data up to 64 MiB. */
export class ContributionReader {
  readonly #client: KubeClient
  /** In the order of their last use. */
  readonly #kept = new Map<string, Kept>()
  #bytes = 0

  constructor(client: KubeClient) {
    this.#client = client
  }

  /**
   * `selected`: as the operator's cache has them. A ConfigMap that is gone by now is left out. Beyond the budget none counts as valid: which
   * of them would fit must not depend on what was read before.
   */
  async read(selected: readonly ConfigMap[], entry: SelectorEntry, { signal, budget }: ReadOptions): Promise<ReadMap[]> {
    const readings = new Map<string, DocumentReading>()
    const add = (name: string, { bytes, reading }: Kept) => {
      budget.left -= bytes
      readings.set(name, reading)
    }
    const stale: ConfigMap[] = []
    for (const map of selected) {
      const known = this.#known(map, entry)
      if (known === undefined) stale.push(map)
      else add(map.metadata.name, known)
    }
    if (budget.left >= 0)
      for await (const map of this.#fetch(stale, entry, signal)) {
        add(map.metadata.name, this.#take(map, entry))
        if (budget.left < 0) break
      }
    return selected.flatMap((map) => {
      const { name, annotations = {} } = map.metadata
      const reading = budget.left < 0 ? TOO_MUCH : readings.get(name)
      return reading === undefined ? [] : [{ name, annotations, reading }]
    })
  }

  async *#fetch(stale: readonly ConfigMap[], entry: SelectorEntry, signal: AbortSignal): AsyncGenerator<ConfigMap, void, void> {
    const [first] = stale
    if (first === undefined) return
    if (stale.length <= LIST_ABOVE) {
      for (const map of stale) {
        const live = await this.#client.tryGet(configMaps, keyOf(map), { signal })
        if (live !== undefined) yield live
      }
      return
    }
    const wanted = new Set(stale.map(({ metadata }) => metadata.name))
    const { namespace = '' } = first.metadata
    const options = { namespace, labelSelector: selectorText(entry.configMapSelector), signal }
    for await (const items of configMapPages(this.#client, options)) for (const map of items) if (wanted.has(map.metadata.name)) yield map
  }

  #take(map: ConfigMap, entry: SelectorEntry): Kept {
    const text = configMapText(map as { data?: Record<string, string>; binaryData?: Record<string, string> }, entry.configMapSelector.key)
    const reading: DocumentReading = text.ok ? readDocument(text.text, entry.format) : { ok: false, problem: text.problem }
    const kept: Kept = { version: versionOf(map), reading, bytes: text.ok ? text.text.length : 100 }
    this.#keep(idOf(map, entry), kept)
    return kept
  }

  #known(map: ConfigMap, entry: SelectorEntry): Kept | undefined {
    const id = idOf(map, entry)
    const kept = this.#kept.get(id)
    if (kept === undefined) return undefined
    const [uid = '', version] = kept.version.split('/')
    const isBehind = uid !== map.metadata.uid || (compareResourceVersions(version, map.metadata.resourceVersion) ?? -1) < 0
    if (isBehind) return undefined
    this.#kept.delete(id)
    this.#kept.set(id, kept)
    return kept
  }

  #keep(id: string, kept: Kept): void {
    this.#bytes += kept.bytes - (this.#kept.get(id)?.bytes ?? 0)
    this.#kept.delete(id)
    this.#kept.set(id, kept)
    for (const [oldest, { bytes }] of this.#kept) {
      if (this.#bytes <= MAX_BYTES) return
      this.#kept.delete(oldest)
      this.#bytes -= bytes
    }
  }
}

function idOf(map: ConfigMap, { format, configMapSelector }: SelectorEntry): string {
  return `${formatKey(keyOf(map))} ${format} ${configMapSelector.key}`
}

function versionOf({ metadata }: ConfigMap): string {
  return `${metadata.uid ?? ''}/${metadata.resourceVersion ?? ''}`
}
