import type { KubeClient } from '@thv/kube/client/client'
import { KubeApiError } from '@thv/kube/client/kube-api-error'
import type { KubeObject, ObjectKey, ResourceType } from '@thv/kube/objects/types'

/** A cluster in memory for the calls of the kubernetes source: lists and reads, kinds that are absent, rights that are missing. */
export class FakeCluster {
  readonly objects: KubeObject[] = []
  /** `list httproutes`, `get services ns/name`, in order. */
  readonly calls: string[] = []
  /** Plural names, with `@version` for one version only. */
  readonly absent = new Set<string>()
  /** `list httproutes`, `get gateways`. */
  readonly forbidden = new Set<string>()

  connect = async (): Promise<KubeClient> => {
    const listAll = async (type: ResourceType, options: { namespace?: string; labelSelector?: string } = {}) => {
      this.#call('list', type, options.namespace)
      const items = this.objects.filter(
        ({ kind, metadata }) => kind === type.kind && (options.namespace === undefined || metadata.namespace === options.namespace),
      )
      return { metadata: {}, items: items.map((item) => structuredClone(item)) }
    }
    const tryGet = async (type: ResourceType, key: ObjectKey) => {
      this.#call('get', type, `${key.namespace}/${key.name}`)
      return this.objects.find(
        ({ kind, metadata }) => kind === type.kind && metadata.namespace === key.namespace && metadata.name === key.name,
      )
    }
    return { listAll, tryGet, close: async () => {} } as unknown as KubeClient
  }

  #call(verb: string, { plural, version }: ResourceType, where = ''): void {
    this.calls.push(`${verb} ${plural} ${where}`.trim())
    if (this.forbidden.has(`${verb} ${plural}`)) throw failure(403, verb, `${plural} are forbidden`)
    if (this.absent.has(plural) || this.absent.has(`${plural}@${version}`)) {
      // A kind that is not served has neither lists nor objects.
      if (verb === 'list') throw failure(404, verb, 'the server could not find the requested resource')
    }
  }
}

function failure(status: number, verb: string, message: string): KubeApiError {
  return new KubeApiError({ status, call: { verb, target: 'the cluster' }, body: { message } })
}
