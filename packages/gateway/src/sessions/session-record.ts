import { isObject } from '@thv/mcp/json-rpc'
import { METHODS, NOTIFICATIONS } from '@thv/mcp/methods'
import type { ParsedMessage } from '@thv/mcp/parse-body'
import type { LegacyClient } from '@thv/mcp/url-elicitation'
import type { SessionRef, SessionStore } from '@thv/store/session-store'

/** The stored state with which a client's session continues at a backend that has forgotten its own. JSON, so that replicas can share it. */
export type HttpSession = {
  /** The id of the backend's session; the client has one of ours. */
  readonly backendId: string
  /** As negotiated: the client goes by it, so a new session must speak it too. */
  readonly version: string
  /** The client's initialize request, letter by letter; absent when it is too large to keep. */
  readonly initialize?: string
  readonly initialized: boolean
  readonly level?: string
  readonly subscriptions: readonly string[]
}

export type HttpSessionStore = SessionStore<HttpSession>

const MAX_INITIALIZE = 64 * 1024
const MAX_SUBSCRIPTIONS = 1_000
const MAX_ATTEMPTS = 8

export function newSession(backendId: string, version: string, initialize: string): HttpSession {
  const kept = initialize.length <= MAX_INITIALIZE ? { initialize } : {}
  return { backendId, version, initialized: false, subscriptions: [], ...kept }
}

/** The client as it described itself; without capabilities where its initialize was too large to keep. */
export function clientOfSession({ version, initialize }: HttpSession): LegacyClient {
  const message: unknown = initialize === undefined ? undefined : JSON.parse(initialize)
  const params = isObject(message) ? message['params'] : undefined
  return { version, capabilities: isObject(params) ? params['capabilities'] : undefined }
}

/** Messages that change what a session is, once the backend has accepted them: that is looked at before the answer is passed on. */
export const STATEFUL_METHODS: ReadonlySet<string> = new Set([
  NOTIFICATIONS.initialized,
  METHODS.setLevel,
  METHODS.resourcesSubscribe,
  METHODS.resourcesUnsubscribe,
])

/** The session after the backend has accepted the message; the same object when that makes no difference. */
export function afterMessage(session: HttpSession, { message, method }: ParsedMessage): HttpSession {
  const params = 'params' in message && isObject(message.params) ? message.params : {}
  const { level, uri } = params
  switch (method) {
    case NOTIFICATIONS.initialized:
      return session.initialized ? session : { ...session, initialized: true }
    case METHODS.setLevel:
      return typeof level === 'string' ? { ...session, level } : session
    case METHODS.resourcesSubscribe:
      if (typeof uri !== 'string' || session.subscriptions.includes(uri) || session.subscriptions.length >= MAX_SUBSCRIPTIONS)
        return session
      return { ...session, subscriptions: [...session.subscriptions, uri] }
    case METHODS.resourcesUnsubscribe:
      return { ...session, subscriptions: session.subscriptions.filter((known) => known !== uri) }
    default:
      return session
  }
}

/** Changes a stored session, also under concurrent changes. Undefined when it is gone. */
export async function changeSession(
  store: HttpSessionStore,
  ref: SessionRef,
  change: (session: HttpSession) => HttpSession,
): Promise<HttpSession | undefined> {
  let current = await store.get(ref)
  for (let attempt = 0; attempt < MAX_ATTEMPTS && current !== undefined; attempt++) {
    const changed = change(current.value)
    if (changed === current.value) return changed
    const update = await store.update(ref, changed, current.version)
    if (update.outcome === 'updated') return changed
    current = update.outcome === 'conflict' ? update.session : undefined
  }
  return current?.value
}
