import { ThvError } from '@thv/kernel/errors'
import type { ReflectorClient } from '../cache/reflector-options.ts'
import type { ListOptions, WatchOptions } from '../client/client.ts'
import type { KubeList, KubeObject, ResourceType, WatchEvent } from '../objects/types.ts'

export interface Thing extends KubeObject {
  spec?: { value?: number }
}

export const things: ResourceType<Thing> = { group: 'test', version: 'v1', kind: 'Thing', plural: 'things', namespaced: true }

type ThingEvent = WatchEvent<Thing>

interface Connection {
  /** Changes up to here were sent or are waiting in `buffer`. */
  readonly buffer: ThingEvent[]
  wake: () => void
  end?: { error?: unknown }
  stalled: boolean
}

/** A server in memory with the rules that matter to a cache: versions, history, paging, watches; and with faults on demand. */
export class FakeApi implements ReflectorClient {
  readonly objects = new Map<string, Thing>()
  readonly calls: { verb: 'list' | 'watch'; options: ListOptions }[] = []
  /** Thrown by the next calls, first in first out. */
  readonly listErrors: unknown[] = []
  readonly watchErrors: unknown[] = []
  /** Runs before each page; a test may change things between two pages or wait. */
  beforePage: (page: number, options: ListOptions) => void | Promise<void> = () => {}
  /** Whether a change reaches the watches. */
  lose: (event: ThingEvent) => boolean = () => false
  /** Watches from these versions fail, always. */
  readonly poisoned = new Map<number, unknown>()
  /** Ends each watch right after it was opened. */
  endWatchesAtOnce = false
  version = 100
  #oldest = 100
  #uids = 0
  readonly #history: ThingEvent[] = []
  readonly #connections = new Set<Connection>()

  get openWatches(): number {
    return this.#connections.size
  }

  watchCalls(): WatchOptions[] {
    return this.calls.filter(({ verb }) => verb === 'watch').map(({ options }) => options as WatchOptions)
  }

  listCalls(): ListOptions[] {
    return this.calls.filter(({ verb }) => verb === 'list').map(({ options }) => options)
  }

  put(name: string, value: number, metadata: Partial<KubeObject['metadata']> = {}): Thing {
    const id = `${metadata.namespace ?? 'ns'}/${name}`
    const old = this.objects.get(id)
    const uid = old?.metadata.uid ?? `uid-${++this.#uids}`
    const object: Thing = {
      metadata: { namespace: 'ns', ...metadata, name, uid, resourceVersion: this.#nextVersion() },
      spec: { value },
    }
    this.objects.set(id, object)
    this.#publish({ type: old ? 'MODIFIED' : 'ADDED', object })
    return object
  }

  drop(name: string, namespace = 'ns'): void {
    const id = `${namespace}/${name}`
    const old = this.objects.get(id)
    if (old === undefined) return
    this.objects.delete(id)
    this.#publish({ type: 'DELETED', object: { ...old, metadata: { ...old.metadata, resourceVersion: this.#nextVersion() } } })
  }

  bookmark(): void {
    const object: Thing = { metadata: { name: '', resourceVersion: String(this.version) } }
    for (const connection of this.#connections) send(connection, { type: 'BOOKMARK', object })
  }

  /** Sends an event of an older version, as a server restored from a backup would. */
  sendRaw(event: ThingEvent): void {
    for (const connection of this.#connections) send(connection, event)
  }

  /** The history is gone: watches from before now get 410. */
  compact(): void {
    this.#oldest = this.version
    this.#history.length = 0
  }

  /** The state of an earlier time, and its versions. */
  restore(objects: readonly Thing[], version: number): void {
    this.objects.clear()
    for (const object of objects) this.objects.set(`${object.metadata.namespace}/${object.metadata.name}`, object)
    this.version = version
    this.compact()
  }

  /** Ends all watches, normally or with an error. */
  endWatches(error?: unknown): void {
    for (const connection of this.#connections) {
      connection.end = error === undefined ? {} : { error }
      connection.wake()
    }
    this.#connections.clear()
  }

  /** Open watches stay open and bring nothing any more. */
  stallWatches(): void {
    for (const connection of this.#connections) connection.stalled = true
  }

  async list<T extends KubeObject>(_type: ResourceType<T>, options: ListOptions = {}): Promise<KubeList<T>> {
    this.calls.push({ verb: 'list', options })
    await this.beforePage(0, options)
    this.#throwNext(this.listErrors)
    const items = [...this.objects.values()].slice(0, options.limit ?? Number.POSITIVE_INFINITY)
    return asList<T>(items, this.version)
  }

  async *listPages<T extends KubeObject>(_type: ResourceType<T>, options: ListOptions = {}) {
    this.calls.push({ verb: 'list', options })
    await this.beforePage(0, options)
    this.#throwNext(this.listErrors)
    options.signal?.throwIfAborted()
    const snapshot = [...this.objects.values()]
    const version = this.version
    const limit = options.limit ?? 500
    for (let start = 0, page = 0; start === 0 || start < snapshot.length; start += limit, page++) {
      if (page > 0) await this.beforePage(page, options)
      if (page > 0 && version < this.#oldest) throw expired()
      yield asList<T>(snapshot.slice(start, start + limit), version)
    }
  }

  async *watch<T extends KubeObject>(_type: ResourceType<T>, options: WatchOptions) {
    this.calls.push({ verb: 'watch', options })
    await Promise.resolve()
    this.#throwNext(this.watchErrors)
    const from = Number(options.resourceVersion)
    if (this.poisoned.has(from)) throw this.poisoned.get(from)
    if (from < this.#oldest) throw expired()
    const buffer = this.#history.filter(({ object }) => Number(object.metadata.resourceVersion) > from)
    const connection: Connection = { buffer, wake: () => {}, stalled: false }
    if (this.endWatchesAtOnce) connection.end = {}
    else this.#connections.add(connection)
    const onAbort = () => connection.wake()
    options.signal?.addEventListener('abort', onAbort)
    try {
      for (;;) {
        for (let event = connection.buffer.shift(); event; event = connection.buffer.shift()) yield event as unknown as WatchEvent<T>
        options.signal?.throwIfAborted()
        if (connection.end?.error !== undefined) throw connection.end.error
        if (connection.end) return
        await new Promise<void>((resolve) => {
          connection.wake = resolve
          if (options.signal?.aborted) resolve()
        })
      }
    } finally {
      this.#connections.delete(connection)
      options.signal?.removeEventListener('abort', onAbort)
    }
  }

  #publish(event: ThingEvent): void {
    this.#history.push(event)
    if (this.lose(event)) return
    for (const connection of this.#connections) send(connection, event)
  }

  #nextVersion(): string {
    this.version += 1
    return String(this.version)
  }

  #throwNext(errors: unknown[]): void {
    if (errors.length > 0) throw errors.shift()
  }
}

function send(connection: Connection, event: ThingEvent): void {
  if (connection.stalled) return
  connection.buffer.push(event)
  connection.wake()
}

export function expired(): ThvError {
  return new ThvError('kube_watch_expired', 'too old resource version')
}

export function unreachable(): ThvError {
  return new ThvError('kube_unreachable', 'connection refused')
}

function asList<T extends KubeObject>(items: readonly Thing[], version: number): KubeList<T> {
  return { metadata: { resourceVersion: String(version) }, items: structuredClone(items) as unknown as T[] }
}
