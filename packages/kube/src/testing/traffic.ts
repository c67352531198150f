import { isThvError } from '@thv/kernel/errors'
import type { KubeClient } from '../client/client.ts'
import type { KubeObject, ResourceType } from '../objects/types.ts'

export interface Traffic {
  /** Writes that the server confirmed. */
  readonly writes: number
  /** Ends after the write under way. Throws what was neither an outage nor a race with itself. */
  stop(): Promise<void>
}

export interface TrafficOptions {
  client: KubeClient
  type: ResourceType
  namespace: string
  /** Names in use at most: few, so that objects are often deleted and made again. */
  names: number
  pauseMs: number
}

/**
 * Creates, changes, deletes and re-creates objects until it is stopped. While the server is down the writes fail, and it is unknown
 * whether the last one was done: the truth is what the server lists in the end.
 */
export function startTraffic({ client, type, namespace, names, pauseMs }: TrafficOptions): Traffic {
  const stopping = new AbortController()
  let writes = 0

  async function writeOne(turn: number): Promise<void> {
    const name = `t${Math.floor(Math.random() * names)}`
    const key = { namespace, name }
    // Not ended by stop: the server might carry out later a write that is no longer awaited.
    const options = { timeoutMs: 2_000 }
    const labels = { turn: String(turn) }
    const dice = Math.random()
    if (dice < 0.25) await client.delete(type, key, options)
    else if (dice < 0.5) await client.create<KubeObject>(type, { metadata: { ...key, labels } }, options)
    else await client.patch(type, key, { kind: 'merge', body: { metadata: { labels } } }, options)
    writes++
  }

  async function run(): Promise<void> {
    for (let turn = 0; !stopping.signal.aborted; turn++) {
      try {
        await writeOne(turn)
      } catch (error) {
        if (!isExpected(error)) throw error
      }
      await new Promise((resolve) => setTimeout(resolve, pauseMs))
    }
  }

  const running = run()
  running.catch(() => {}) // thrown by stop()
  return {
    get writes() {
      return writes
    },
    async stop() {
      stopping.abort()
      await running
    },
  }
}

/** 404 and 409 come from our own dice; 403 and 5xx from a server that is not fully up; the rest from one that is down. */
function isExpected(error: unknown): boolean {
  if (isThvError(error, 'kube_unreachable') || isThvError(error, 'kube_response_malformed')) return true
  if (!isThvError(error, 'kube_status')) return false
  const status = Number(error.details['status'])
  return [403, 404, 409, 429].includes(status) || status >= 500
}
