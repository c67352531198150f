import { type Askable, type McpResource, resourceKey } from '@thv/catalog/discover/objects/mcp-resource'
import { toolNameProblem } from '@thv/catalog/server-extensions'
import { createBackoff } from '@thv/kernel/backoff'
import type { Clock, Timer } from '@thv/kernel/clock'
import { errorMessage } from '@thv/kernel/errors'
import { jsonEqual } from '@thv/kernel/json'
import type { Logger } from '@thv/telemetry/log'

export interface IntrospectionOptions {
  readonly clock: Clock
  readonly random: () => number
  readonly log: Logger
  /** Asks a server for the names of its tools. */
  readonly ask: (url: string, signal: AbortSignal) => Promise<readonly string[]>
  /** The tools of a resource are others than before. */
  readonly onChange: (resource: McpResource) => void
}

interface Asked {
  resource: McpResource & { readonly askable: Askable }
  tools: readonly string[] | undefined
  dueAt: number
  isAsking: boolean
  readonly backoff: ReturnType<typeof createBackoff>
}

const PARALLEL = 4
const FRESH_MS = 3_600_000
const MAX_TOOLS = 1_000
/** As MCP recommends. */
const MAX_NAME = 128

/**
 * The tools of running servers, asked for beside the syncs of a source: a sync never waits for an answer, and a failure keeps what was
 * known. A server is asked again when its generation changes, and after an hour.
 */
export class Introspection {
  readonly #options: IntrospectionOptions
  readonly #asked = new Map<string, Asked>()
  readonly #running = new Set<Promise<void>>()
  readonly #stopped = new AbortController()
  #timer: Timer | undefined

  constructor(options: IntrospectionOptions) {
    this.#options = options
  }

  readonly toolsOf = (resource: McpResource): readonly string[] | undefined => this.#asked.get(resourceKey(resource))?.tools

  /** Exactly these are of interest; those that cannot be asked keep what is known. */
  want(resources: readonly McpResource[]): void {
    if (this.#stopped.signal.aborted) return
    const wanted = new Set(resources.map(resourceKey))
    for (const key of this.#asked.keys()) if (!wanted.has(key)) this.#asked.delete(key)
    for (const resource of resources) if (isAskable(resource)) this.#note(resource)
    this.#pump()
  }

  async close(): Promise<void> {
    this.#stopped.abort()
    this.#timer?.cancel()
    await Promise.all(this.#running)
  }

  #note(resource: Asked['resource']): void {
    const now = this.#options.clock.monotonic()
    const known = this.#asked.get(resourceKey(resource))
    if (known === undefined) {
      const backoff = createBackoff({ baseMs: 5_000, maxMs: FRESH_MS, random: this.#options.random })
      const fresh = { tools: undefined, dueAt: now, isAsking: false, backoff }
      this.#asked.set(resourceKey(resource), { resource, ...fresh })
      return
    }
    const isSame = isSameAskable(resource.askable, known.resource.askable) && resource.uid === known.resource.uid
    known.resource = resource
    if (isSame) return
    known.dueAt = now
    known.backoff.reset()
  }

  #pump(): void {
    if (this.#stopped.signal.aborted) return
    this.#timer?.cancel()
    this.#timer = undefined
    const { clock } = this.#options
    const now = clock.monotonic()
    let next = Number.POSITIVE_INFINITY
    for (const each of this.#asked.values()) {
      if (each.isAsking) continue
      if (each.dueAt > now) next = Math.min(next, each.dueAt)
      else if (this.#running.size < PARALLEL) this.#start(each)
    }
    if (next < Number.POSITIVE_INFINITY && this.#running.size < PARALLEL) this.#timer = clock.setTimer(next - now, () => this.#pump())
  }

  #start(each: Asked): void {
    each.isAsking = true
    const asking: Promise<void> = this.#askOne(each).finally(() => {
      each.isAsking = false
      this.#running.delete(asking)
      this.#pump()
    })
    this.#running.add(asking)
  }

  async #askOne(each: Asked): Promise<void> {
    const { clock, ask, onChange, log } = this.#options
    const { resource } = each
    try {
      const tools = usableNames(await ask(resource.askable.url, this.#stopped.signal))
      each.backoff.reset()
      // It was edited meanwhile: the answer counts, and it is asked again.
      if (isSameAskable(each.resource.askable, resource.askable)) each.dueAt = clock.monotonic() + FRESH_MS
      const isNews = !jsonEqual(each.tools, tools)
      each.tools = tools
      if (isNews && this.#asked.get(resourceKey(resource)) === each) onChange(resource)
    } catch (error) {
      each.dueAt = clock.monotonic() + each.backoff.next()
      if (this.#stopped.signal.aborted) return
      const { kind, namespace, name } = resource
      log.debug('a server did not tell its tools', { kind, namespace, name, error: errorMessage(error) })
    }
  }
}

function isAskable(resource: McpResource): resource is Asked['resource'] {
  return resource.askable !== undefined
}

function isSameAskable(a: Askable, b: Askable): boolean {
  return a.url === b.url && a.generation === b.generation
}

/** Names that an entry may hold, each once. A server that offers none has an empty list. */
function usableNames(names: readonly string[]): readonly string[] {
  return [...new Set(names)].filter((name) => name.length <= MAX_NAME && toolNameProblem(name) === undefined).slice(0, MAX_TOOLS)
}
