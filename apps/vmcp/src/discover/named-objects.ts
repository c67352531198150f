import type { Clock } from '@thv/kernel/clock'
import { linkSignals } from '@thv/kernel/lifecycle'
import { type KubeObject, Reflector, type ReflectorClient, type ResourceType } from '@thv/kube'

export interface NamedObjectsOptions<T extends KubeObject> {
  readonly client: ReflectorClient
  readonly type: ResourceType<T>
  readonly namespace: string
  readonly clock: Clock
  readonly signal: AbortSignal
  readonly onChange: () => void
  readonly onError: (error: unknown, cache: string) => void
}

interface Watched<T extends KubeObject> {
  readonly reflector: Reflector<T>
  readonly stop: AbortController
}

/** Rights on an object may come a moment after the reference to it. */
const BACKOFF = { baseMs: 500, maxMs: 5_000 }

/** Objects that are watched one by one, by name: the account may read no others. */
export class NamedObjects<T extends KubeObject> {
  readonly #options: NamedObjectsOptions<T>
  readonly #watched = new Map<string, Watched<T>>()

  constructor(options: NamedObjectsOptions<T>) {
    this.#options = options
  }

  /** Watches exactly these. */
  want(names: ReadonlySet<string>): void {
    for (const [name, { stop }] of this.#watched) {
      if (names.has(name)) continue
      stop.abort()
      this.#watched.delete(name)
    }
    for (const name of names) if (!this.#watched.has(name)) this.#watched.set(name, this.#watch(name))
  }

  /** `unknown` until it has been asked for once. */
  get(name: string): T | undefined | 'unknown' {
    const reflector = this.#watched.get(name)?.reflector
    if (reflector === undefined || !reflector.hasSynced) return 'unknown'
    return reflector.store.get({ namespace: this.#options.namespace, name })
  }

  #watch(name: string): Watched<T> {
    const { client, type, namespace, clock, signal, onChange, onError } = this.#options
    const stop = new AbortController()
    const reflector: Reflector<T> = new Reflector<T>({
      ...{ client, type, namespace, clock, backoff: BACKOFF, fieldSelector: `metadata.name=${name}` },
      onError: (error) => onError(error, `${type.plural} ${name}`),
    })
    reflector.addHandler(onChange)
    void reflector.run(linkSignals(signal, stop.signal))
    void reflector.waitForSync().then(onChange, () => undefined) // stopped before it was there
    return { reflector, stop }
  }
}
