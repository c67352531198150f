import { documentImages } from '@thv/catalog/images/document-images'
import { listedHashes } from '@thv/catalog/images/image-hashes'
import { type ConditionUpdate, type ConfigMap, formatKey, isControlledBy, type ObjectKey, type Pod } from '@thv/kube'
import { MCPRegistryCondition, MCPRegistryReason } from '@thv/resources/kinds/mcp-registry/constants'
import type { CanonicalMCPRegistrySpec } from '@thv/resources/kinds/mcp-registry/normalise'
import type { MCPRegistry } from '@thv/resources/kinds/mcp-registry/schema'
import type { ImageList, ImageLists } from '../../../enforcement/image-lists.ts'
import { COMPONENT_LABEL } from '../objects/names.ts'
import type { ImagesReport } from './images-report.ts'
import type { ReportReader } from './report-reader.ts'

export interface EnforcedImagesDeps {
  readonly lists: ImageLists
  readonly reports: Pick<ReportReader<ImagesReport>, 'read'>
}

export interface EnforcedRegistry {
  readonly registry: MCPRegistry
  readonly key: ObjectKey
  readonly spec: CanonicalMCPRegistrySpec
  /** ConfigMaps of the namespace. */
  readonly maps: readonly ConfigMap[]
  /** Ready pods of the API. */
  readonly pods: readonly Pod[]
  readonly signal: AbortSignal
}

export interface Enforcement {
  readonly conditions: readonly ConditionUpdate[]
  /** The list is not known yet: look again soon. */
  readonly pending: boolean
}

/** Keeps the list of images that MCPServers of the namespace may run. A registry that cannot be asked counts with its last known list. */
export class EnforcedImages {
  readonly #deps: EnforcedImagesDeps
  /** By registry: hashes of its own data ConfigMaps, worked out once per version of them. */
  readonly #stored = new Map<string, { readonly identity: string; readonly hashes: ReadonlySet<string> }>()

  constructor(deps: EnforcedImagesDeps) {
    this.#deps = deps
  }

  async update(of: EnforcedRegistry): Promise<Enforcement> {
    const { key, spec, pods, signal } = of
    const { lists, reports } = this.#deps
    if (!spec.enforceServers) {
      this.forget(key)
      return { conditions: [], pending: false }
    }
    const stored = this.#storedHashes(of)
    if ('source' in spec) {
      if (stored !== undefined) lists.set(key, { hashes: stored })
    } else {
      for (const pod of pods) {
        const report = await reports.read(pod, signal)
        if (report === undefined) continue
        // The server lists no members of groups; they count all the same.
        if (report.synced) lists.set(key, { hashes: stored === undefined ? report.images : new Set([...report.images, ...stored]) })
        break
      }
    }
    const list = lists.get(key)
    return { conditions: enforcementCondition(spec, list), pending: list === undefined && spec.api.enabled }
  }

  forget(key: ObjectKey): void {
    this.#stored.delete(formatKey(key))
    this.#deps.lists.forget(key)
  }

  /** Undefined: it has written none yet. */
  #storedHashes({ registry, key, maps }: EnforcedRegistry): ReadonlySet<string> | undefined {
    const own = maps.filter((map) => isData(map) && isControlledBy(map, registry))
    if (own.length === 0) return undefined
    const identity = JSON.stringify(own.map(({ metadata }) => [metadata.uid, metadata.resourceVersion]).sort())
    const known = this.#stored.get(formatKey(key))
    if (known?.identity === identity) return known.hashes
    const texts = own.map(({ data }) => data?.['registry.json'] ?? '')
    const hashes = new Set(texts.flatMap(documentImages).flatMap(listedHashes))
    this.#stored.set(formatKey(key), { identity, hashes })
    return hashes
  }
}

function isData({ metadata }: ConfigMap): boolean {
  const component = metadata.labels?.[COMPONENT_LABEL]
  return component === 'registry-storage' || component === 'registry-aggregate'
}

/** Pure. */
export function enforcementCondition(spec: CanonicalMCPRegistrySpec, list: ImageList | undefined): ConditionUpdate[] {
  if (!spec.enforceServers) return []
  const type = MCPRegistryCondition.ServersEnforced
  if (list !== undefined) {
    const message = 'MCPServers of this namespace may run images that this registry lists'
    return [{ type, status: 'True', reason: MCPRegistryReason.ImagesListed, message }]
  }
  const why = 'source' in spec || spec.api.enabled ? 'its data have not been read yet' : 'spec.api.enabled is false'
  const message = `the images of this registry are not known, because ${why}: it allows no MCPServer to start`
  return [{ type, status: 'Unknown', reason: MCPRegistryReason.ImagesUnknown, message }]
}
