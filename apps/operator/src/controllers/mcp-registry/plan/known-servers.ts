import { createHash } from 'node:crypto'
import { type KnownServers, knownServers, noKnownServers } from '@thv/catalog/discover/entry/known-servers'
import { parseRegistryText } from '@thv/catalog/sources/format/parse-registry-text'

/** The data of one source that the operator itself holds. */
export interface HeldSource {
  readonly format: 'toolhive' | 'upstream'
  readonly texts: readonly string[]
}

/** Looks images up in the sources that the operator holds; the same object for the same data. */
export class KnownServerLookup {
  readonly #known = new Map<string, { readonly identity: string; readonly servers: KnownServers }>()

  /** `sources` in the order in which the registry lists them. */
  of(registry: string, sources: readonly HeldSource[]): KnownServers {
    const identity = createHash('sha256').update(JSON.stringify(sources)).digest('base64url')
    const known = this.#known.get(registry)
    if (known?.identity === identity) return known.servers
    const servers = sources.length === 0 ? noKnownServers : knownServers(sources.map(entriesOf))
    this.#known.set(registry, { identity, servers })
    return servers
  }

  forget(registry: string): void {
    this.#known.delete(registry)
  }
}

function entriesOf({ format, texts }: HeldSource) {
  return texts.flatMap((text) => {
    try {
      return parseRegistryText(text, { format }).entries.map(({ claims: _, ...entry }) => entry)
    } catch {
      return [] // the source itself reports what is wrong with it
    }
  })
}
