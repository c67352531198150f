import { abortable, withTimeLimit } from '@thv/kernel/deadline'
import { errorMessage } from '@thv/kernel/errors'
import { isObject, type JsonObject, type JsonRpcNotification } from '../json-rpc.ts'
import { METHODS, NOTIFICATIONS } from '../methods.ts'
import type { EngineListening, EngineListenOptions } from './engine.ts'
import type { LegacyEngine } from './legacy-engine.ts'
import type { ListenFilter } from './mcp-client.ts'

/**
 * The legacy form of listening: a stream that is there for the whole session, and a subscription for each resource. Nothing is
 * promised that the server did not say it offers, or that there is no stream for.
 */
export async function openLegacyListening(
  engine: LegacyEngine,
  filter: ListenFilter,
  options: EngineListenOptions,
): Promise<EngineListening> {
  const { signal, onNotification } = options
  const hasStream = await abortable(engine.link.openStandalone(), signal)
  const honoured = hasStream ? honouredBy(engine.identity.capabilities, filter) : {}
  const uris = honoured.resourceSubscriptions ?? []
  for (const uri of uris) await engine.request(METHODS.resourcesSubscribe, { uri }, { signal })
  const listener = (notification: JsonRpcNotification) => {
    if (isWanted(notification, honoured)) onNotification(notification)
  }
  engine.listeners.set(listener, uris)
  const ended = Promise.withResolvers<void>()
  engine.over.addEventListener('abort', () => ended.resolve(), { once: true })
  if (engine.over.aborted) ended.resolve()
  return {
    honoured,
    ended: ended.promise,
    async close() {
      if (!engine.listeners.delete(listener)) return
      ended.resolve()
      await unsubscribe(engine, uris)
    },
  }
}

/** Two listeners for one resource share its subscription; the last to leave ends it. */
async function unsubscribe(engine: LegacyEngine, uris: readonly string[]): Promise<void> {
  const { clock, limits, warn } = engine.context
  const held = new Set([...engine.listeners.values()].flat())
  const free = uris.filter((uri) => !held.has(uri))
  if (free.length === 0 || engine.over.aborted) return
  const limit = { clock, timeoutMs: limits.farewellMs, what: 'the end of the subscriptions', signals: [engine.over] }
  try {
    await withTimeLimit(limit, async (signal) => {
      for (const uri of free) await engine.request(METHODS.resourcesUnsubscribe, { uri }, { signal })
    })
  } catch (error) {
    warn(`subscriptions could not be ended: ${errorMessage(error)}`)
  }
}

function honouredBy(capabilities: JsonObject, filter: ListenFilter): ListenFilter {
  const has = (feature: string, flag: string) => isObject(capabilities[feature]) && capabilities[feature][flag] === true
  const uris = filter.resourceSubscriptions ?? []
  return {
    ...(filter.toolsListChanged && has('tools', 'listChanged') && { toolsListChanged: true }),
    ...(filter.promptsListChanged && has('prompts', 'listChanged') && { promptsListChanged: true }),
    ...(filter.resourcesListChanged && has('resources', 'listChanged') && { resourcesListChanged: true }),
    ...(uris.length > 0 && has('resources', 'subscribe') && { resourceSubscriptions: uris }),
  }
}

export function isWanted({ method, params }: JsonRpcNotification, filter: ListenFilter): boolean {
  if (method === NOTIFICATIONS.toolsListChanged) return filter.toolsListChanged === true
  if (method === NOTIFICATIONS.promptsListChanged) return filter.promptsListChanged === true
  if (method === NOTIFICATIONS.resourcesListChanged) return filter.resourcesListChanged === true
  if (method !== NOTIFICATIONS.resourcesUpdated) return false
  const uri = String(params?.['uri'])
  return (filter.resourceSubscriptions ?? []).some((subscribed) => isSameOrBelow(uri, subscribed))
}

/** The changed resource may lie below the subscribed one. One whose name only begins in the same way does not. */
function isSameOrBelow(uri: string, subscribed: string): boolean {
  if (!uri.startsWith(subscribed)) return false
  return uri.length === subscribed.length || subscribed.endsWith('/') || BELOW.has(uri[subscribed.length] ?? '')
}

const BELOW = new Set(['/', '?', '#'])
