import { createHash } from 'node:crypto'
import { packageImages } from '@thv/catalog/images/document-images'
import { listedHashes } from '@thv/catalog/images/image-hashes'
import type { RegistryStore } from '../store/registry-store.ts'
import type { Catalog } from '../views/catalog.ts'
import { documentOf, documentText } from '../views/catalog-row.ts'

export interface ListedImagesOptions {
  readonly store: Pick<RegistryStore, 'sources' | 'registries'>
  readonly catalog: Catalog
  readonly pause: () => Promise<void>
}

/** The images that the registries list. Sent as text: many thousands of strings would stop the other thread. */
export interface ListedImages {
  /** Another whenever the body is. */
  readonly tag: string
  /** JSON of `{synced, images}`. */
  readonly body: string
}

const PER_TURN = 500

/** Hashes of the images that living entries of all registries name; worked out again only after a change. */
export function createListedImages({ store, catalog, pause }: ListedImagesOptions): () => Promise<ListedImages> {
  let known: { readonly identity: string; readonly images: ListedImages } | undefined

  return async () => {
    const listed = new Set((await store.registries()).flatMap(({ spec }) => spec.sources))
    const sources = (await store.sources()).filter(({ config }) => listed.has(config.name))
    // The list waits for sources that have not been tried yet, not for one that cannot be read.
    const isRead = sources.map(({ config, sync }) => config.managed !== undefined || sync.lastSuccess !== undefined)
    const isOpen = sources.some(({ sync }, i) => !isRead[i] && sync.phase !== 'failed' && sync.attemptCount === 0)
    const synced = isRead.includes(true) && !isOpen
    const identity = JSON.stringify([synced, sources.map(({ id, config }) => [id, catalog.newest(config.name).revision])])
    if (known?.identity === identity) return known.images
    const body = JSON.stringify({ synced, images: await collect(new Set(sources.map(({ config }) => config.name))) })
    const images = { tag: createHash('sha256').update(body).digest('base64url'), body }
    known = { identity, images }
    return images
  }

  /** Sorted, so that equal lists are equal texts. */
  async function collect(sources: ReadonlySet<string>): Promise<readonly string[]> {
    const hashes = new Set<string>()
    for (const [i, { groups }] of catalog.slots.entries()) {
      if (i % PER_TURN === 0) await pause()
      for (const { source, rows } of groups) {
        if (!sources.has(source)) continue
        for (const row of rows) {
          if (row.deleted || !documentText(row).includes('"oci"')) continue
          for (const image of packageImages(documentOf(row))) for (const hash of listedHashes(image)) hashes.add(hash)
        }
      }
    }
    return [...hashes].sort()
  }
}
