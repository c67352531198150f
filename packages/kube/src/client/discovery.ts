import { type Clock, systemClock } from '@thv/kernel/clock'
import { createSingleFlight } from '@thv/kernel/single-flight'
import type { ResourceType } from '../objects/types.ts'
import type { KubeClient } from './client.ts'
import { isNotFound } from './kube-api-error.ts'
import { apiVersionOf } from './paths.ts'
import { isRecord, malformed } from './response-body.ts'

export interface ServerVersion {
  readonly major: string
  readonly minor: string
  readonly gitVersion: string
}

export interface ApiResource {
  readonly name: string
  readonly kind: string
  readonly namespaced: boolean
  readonly verbs: readonly string[]
  readonly shortNames: readonly string[]
}

/** Abilities of the server. Answers are kept for a short time; an unreachable server throws, it never counts as "no". */
export interface Discovery {
  serverVersion(): Promise<ServerVersion>
  /** Whether the server serves this kind in this version: "is the CRD installed?". */
  hasResource(type: ResourceType): Promise<boolean>
  /** Undefined when there is no such group. `''` is the core group. */
  preferredVersion(group: string): Promise<string | undefined>
  /** Resources and subresources (`pods/log`) of `v1` or `apps/v1`; undefined when there is no such group or version. */
  resources(groupVersion: string): Promise<readonly ApiResource[] | undefined>
  /** The next question goes to the server: to be called when a CRD has come or gone. */
  forget(): void
}

const MAX_ENTRIES = 256

export function createDiscovery(client: KubeClient, options: { clock?: Clock; ttlMs?: number } = {}): Discovery {
  const { clock = systemClock, ttlMs = 10_000 } = options
  const flight = createSingleFlight<string, unknown>()
  let cache = new Map<string, { value: unknown; until: number }>()
  let generation = 0

  /** The JSON at a path, or undefined for a 404. */
  async function fetch(path: string): Promise<unknown> {
    const held = cache.get(path)
    if (held && clock.monotonic() < held.until) return held.value
    const target = cache
    return await flight.run(`${generation} ${path}`, async () => {
      const value = await client.raw('GET', path).then(
        (response) => response.json(),
        (error: unknown) => {
          if (isNotFound(error)) return undefined
          throw error
        },
      )
      if (target.size >= MAX_ENTRIES) target.clear()
      target.set(path, { value, until: clock.monotonic() + ttlMs })
      return value
    })
  }

  const discovery: Discovery = {
    async serverVersion() {
      const found = await fetch('/version')
      if (!isRecord(found) || typeof found.gitVersion !== 'string') throw malformed({ verb: 'GET', target: '/version' }, 'not a version')
      return { major: String(found.major ?? ''), minor: String(found.minor ?? ''), gitVersion: found.gitVersion }
    },

    async hasResource(type) {
      const found = await discovery.resources(apiVersionOf(type))
      return found?.some((resource) => resource.name === type.plural && resource.kind === type.kind) ?? false
    },

    async preferredVersion(group) {
      const path = group === '' ? '/api' : `/apis/${group}`
      const found = await fetch(path)
      if (found === undefined) return undefined
      const version = !isRecord(found) ? undefined : group === '' ? coreVersion(found) : preferred(found)
      if (version === undefined) throw malformed({ verb: 'GET', target: path }, 'no list of versions')
      return version
    },

    async resources(groupVersion) {
      const path = groupVersion.includes('/') ? `/apis/${groupVersion}` : `/api/${groupVersion}`
      const found = await fetch(path)
      if (found === undefined) return undefined
      if (!isRecord(found) || !Array.isArray(found.resources)) throw malformed({ verb: 'GET', target: path }, 'no list of resources')
      return found.resources.filter(isRecord).map(asResource)
    },

    forget() {
      // A flight under way is of the old generation and writes into the old map: its answer may be from before.
      cache = new Map()
      generation++
    },
  }
  return discovery
}

function coreVersion(found: Record<string, unknown>): string | undefined {
  const first: unknown = Array.isArray(found.versions) ? found.versions[0] : undefined
  return typeof first === 'string' ? first : undefined
}

function preferred({ preferredVersion }: Record<string, unknown>): string | undefined {
  return isRecord(preferredVersion) && typeof preferredVersion.version === 'string' ? preferredVersion.version : undefined
}

function asResource(entry: Record<string, unknown>): ApiResource {
  return {
    name: String(entry.name ?? ''),
    kind: String(entry.kind ?? ''),
    namespaced: entry.namespaced === true,
    verbs: strings(entry.verbs),
    shortNames: strings(entry.shortNames),
  }
}

function strings(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((item) => typeof item === 'string') : []
}
