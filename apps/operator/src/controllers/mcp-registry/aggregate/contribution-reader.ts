import { type DocumentReading, readDocument } from '@thv/catalog/merge/read-document'
import { configMapText } from '@thv/catalog/sources/config-map/config-map-text'
import { type ConfigMap, compareResourceVersions, configMaps, formatKey, type KubeClient, keyOf } from '@thv/kube'
import type { CanonicalRegistryEntry } from '@thv/resources/kinds/mcp-registry/normalise'
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
const PAGE = 100
const MAX_BYTES = 64 * 1024 * 1024

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

  /** `selected`: as the operator's cache has them. A ConfigMap that is gone by now is left out. */
  async read(selected: readonly ConfigMap[], entry: SelectorEntry, signal: AbortSignal): Promise<ReadMap[]> {
    const stale = selected.filter((map) => this.#known(map, entry) === undefined)
    const fresh = new Map<string, DocumentReading>()
    for await (const map of this.#fetch(stale, entry, signal)) fresh.set(map.metadata.name, this.#take(map, entry))
    return selected.flatMap((map) => {
      const reading = fresh.get(map.metadata.name) ?? this.#known(map, entry)
      return reading === undefined ? [] : [{ name: map.metadata.name, annotations: map.metadata.annotations ?? {}, reading }]
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
    const options = { namespace, labelSelector: selectorText(entry.configMapSelector), limit: PAGE, signal }
    for await (const page of this.#client.listPages(configMaps, options))
      for (const map of page.items) if (wanted.has(map.metadata.name)) yield map
  }

  #take(map: ConfigMap, entry: SelectorEntry): DocumentReading {
    const text = configMapText(map as { data?: Record<string, string>; binaryData?: Record<string, string> }, entry.configMapSelector.key)
    const reading: DocumentReading = text.ok ? readDocument(text.text, entry.format) : { ok: false, problem: text.problem }
    this.#keep(idOf(map, entry), { version: versionOf(map), reading, bytes: text.ok ? text.text.length : 100 })
    return reading
  }

  #known(map: ConfigMap, entry: SelectorEntry): DocumentReading | undefined {
    const id = idOf(map, entry)
    const kept = this.#kept.get(id)
    if (kept === undefined) return undefined
    const [uid = '', version] = kept.version.split('/')
    const isBehind = uid !== map.metadata.uid || (compareResourceVersions(version, map.metadata.resourceVersion) ?? -1) < 0
    if (isBehind) return undefined
    this.#kept.delete(id)
    this.#kept.set(id, kept)
    return kept.reading
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
