import type { KindVersions } from '@thv/catalog/cluster/cluster-kinds'
import type { Clock } from '@thv/kernel/clock'
import { ThvError } from '@thv/kernel/errors'
import type { KubeClient } from '@thv/kube/client/client'
import { isForbidden, isNotFound } from '@thv/kube/client/kube-api-error'
import type { KubeObject, ObjectKey } from '@thv/kube/objects/types'

export interface KindReaderOptions {
  readonly client: KubeClient
  readonly clock: Clock
  readonly signal: AbortSignal
  /** Undefined: all. */
  readonly namespaces: readonly string[] | undefined
}

export type KindList =
  | { readonly found: 'objects'; readonly objects: readonly KubeObject[] }
  /** No version of the kind is served. */
  | { readonly found: 'absent' }
  | { readonly found: 'forbidden'; readonly problem: string }

/** A CRD that is being replaced answers 404 for a moment. */
const AGAIN_MS = 500

/** Reads kinds that the cluster may not have. Only a 404, seen twice, counts as absent. */
export class KindReader {
  readonly #options: KindReaderOptions

  constructor(options: KindReaderOptions) {
    this.#options = options
  }

  /** Of the configured namespaces, or of `namespace` alone. */
  async list(kind: KindVersions, { labelSelector, namespace }: { labelSelector?: string; namespace?: string } = {}): Promise<KindList> {
    const { clock, signal } = this.#options
    const first = await this.#listOnce(kind, labelSelector, namespace)
    if (first.found !== 'absent') return first
    await clock.sleep(AGAIN_MS, signal)
    return await this.#listOnce(kind, labelSelector, namespace)
  }

  /** Undefined: it does not exist, or the kind does not. */
  async get(kind: KindVersions, key: ObjectKey): Promise<KubeObject | 'unreadable' | undefined> {
    const { client, signal } = this.#options
    for (const version of kind) {
      try {
        const object = await client.tryGet(version, key, { signal })
        if (object !== undefined) return object
      } catch (error) {
        if (isForbidden(error)) return 'unreadable'
        throw error
      }
    }
    return undefined
  }

  async #listOnce(kind: KindVersions, labelSelector: string | undefined, namespace: string | undefined): Promise<KindList> {
    const { client, signal, namespaces } = this.#options
    const scope = namespace === undefined ? (namespaces ?? [undefined]) : [namespace]
    for (const version of kind) {
      try {
        const objects: KubeObject[] = []
        for (const each of scope) {
          const options = { signal, ...(each === undefined ? {} : { namespace: each }), ...(labelSelector ? { labelSelector } : {}) }
          for (const object of (await client.listAll(version, options)).items) objects.push(object)
        }
        return { found: 'objects', objects }
      } catch (error) {
        if (isNotFound(error)) continue
        if (isForbidden(error)) return { found: 'forbidden', problem: error instanceof Error ? error.message : String(error) }
        throw error
      }
    }
    return { found: 'absent' }
  }
}

/** The objects, none where the kind is absent. Throws where they may not be read. */
export function readable(list: KindList): readonly KubeObject[] {
  if (list.found === 'forbidden') throw new ThvError('source_failed', list.problem)
  return list.found === 'objects' ? list.objects : []
}
