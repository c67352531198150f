import { EventEmitter, on } from 'node:events'
import type { KubeClient, KubeObject, ListOptions, ResourceType, WatchEvent, WatchOptions } from '@thv/kube'

/** The API server as far as caches see it: a list of each kind, then whatever the test puts there. */
export class WatchedApi {
  readonly #objects = new Map<string, Map<string, KubeObject>>()
  readonly #changes = new EventEmitter().setMaxListeners(100)
  #version = 100

  readonly client = {
    listPages: (type: ResourceType, options?: ListOptions) => this.#pages(type, options),
    watch: (type: ResourceType, options: WatchOptions) => this.#watch(type, options),
  } as unknown as KubeClient

  put(plural: string, object: KubeObject): void {
    const all = this.#objects.get(plural) ?? new Map<string, KubeObject>()
    const { namespace, name } = object.metadata
    const old = all.get(`${namespace}/${name}`)
    const generation = (old?.metadata.generation ?? 0) + 1
    const metadata = { uid: `uid-${name}`, generation, ...object.metadata, resourceVersion: String(++this.#version) }
    const next = { ...object, metadata }
    all.set(`${namespace}/${name}`, next)
    this.#objects.set(plural, all)
    this.#changes.emit(plural, { type: old === undefined ? 'ADDED' : 'MODIFIED', object: structuredClone(next) })
  }

  async *#pages({ plural }: ResourceType, { signal }: ListOptions = {}) {
    signal?.throwIfAborted()
    const items = [...(this.#objects.get(plural)?.values() ?? [])]
    yield { metadata: { resourceVersion: String(this.#version) }, items: structuredClone(items) }
  }

  async *#watch({ plural }: ResourceType, { signal, resourceVersion }: WatchOptions): AsyncGenerator<WatchEvent> {
    const changes = on(this.#changes, plural, signal && { signal })
    // Changes between the list and the watch.
    for (const object of this.#objects.get(plural)?.values() ?? [])
      if (Number(object.metadata.resourceVersion) > Number(resourceVersion)) yield { type: 'MODIFIED', object: structuredClone(object) }
    for await (const [event] of changes) yield event as WatchEvent
  }
}
