import { createSingleFlight } from '@thv/kernel/single-flight'
import { type ConfigMap, configMaps, formatKey, type KubeClient, type ObjectKey } from '@thv/kube'
import type { ConfigMapContent } from '../references/lookup.ts'
import type { KindCache } from './kind-cache.ts'

/** Undefined when there is no such ConfigMap. */
export type ConfigMapReader = (key: ObjectKey, signal?: AbortSignal) => Promise<ConfigMapContent | undefined>

const MAX_CONTENTS = 2_000

/** Reads the content of users' ConfigMaps once per version, however many workloads use it. */
export function configMapReader(client: KubeClient, metadata: KindCache<ConfigMap>): ConfigMapReader {
  /** In the order of their last use. */
  const known = new Map<string, ConfigMapContent>()
  const flight = createSingleFlight<string, { content: ConfigMapContent | undefined }>()
  return async (key, signal) => {
    const id = formatKey(key)
    const cached = metadata.get(key)
    if (cached === undefined) return undefined
    const have = known.get(id)
    if (have !== undefined && have.uid === cached.metadata.uid && have.resourceVersion === cached.metadata.resourceVersion) {
      known.delete(id)
      known.set(id, have)
      return have
    }
    const { content } = await flight.run(`${id}@${cached.metadata.resourceVersion}`, async () => {
      const live = await client.tryGet(configMaps, key)
      return { content: live && contentOf(live) }
    })
    signal?.throwIfAborted()
    known.delete(id)
    if (content !== undefined) known.set(id, content)
    const oldest = known.keys().next().value
    if (known.size > MAX_CONTENTS && oldest !== undefined) known.delete(oldest)
    return content
  }
}

function contentOf({ metadata, data, binaryData }: ConfigMap): ConfigMapContent {
  return { uid: metadata.uid ?? '', resourceVersion: metadata.resourceVersion ?? '', data: data ?? {}, ...(binaryData && { binaryData }) }
}
