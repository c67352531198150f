import { isObject, type JsonObject } from '@thv/mcp/json-rpc'
import { METHODS } from '@thv/mcp/methods'

/** All that is known about a process when it says something that names no call. */
export interface Claims<S extends { readonly party: string }> {
  /** The session whose own process it is. */
  readonly own: S | undefined
  /** Sessions with calls in flight there, cancelled ones included. */
  readonly owners: ReadonlyMap<S, number>
  /** Whether a call of another party was answered a short time ago. */
  readonly answered: { answeredOther(party: string): boolean } | undefined
}

/**
 * For whom a message without an id is meant: the session whose own process it is, or the one that owns all calls in flight, unless the
 * server may still speak for a call of another party. Undefined where that is not certain. Nothing is ever guessed: a prompt or a log
 * line that reaches the wrong client is a leak. Answered calls of the same party do not count: where there is one process for all,
 * clients that come one after the other would get no logs and no questions.
 */
export function ownerOf<S extends { readonly party: string }>({ own, owners, answered }: Claims<S>): S | undefined {
  if (own !== undefined) return own
  if (owners.size !== 1) return undefined
  const [only] = owners.keys()
  return only === undefined || answered?.answeredOther(only.party) === true ? undefined : only
}

export type Attribution<S> = { readonly to: S } | { readonly refusedBecause: 'unattributed' | 'capability' }

/**
 * The receiver of a request of the server, or why it is rejected. A session's own process received that client's capabilities and is held
 * to them by the client itself; a shared one received all that can be relayed, so the owner's own are checked here.
 */
export function attributeRequest<S extends { readonly party: string; readonly clientCapabilities: JsonObject }>(
  claims: Claims<S>,
  method: string,
  params: JsonObject | undefined,
): Attribution<S> {
  const owner = ownerOf(claims)
  if (owner === undefined) return { refusedBecause: 'unattributed' }
  if (claims.own !== undefined) return { to: owner }
  return declares(owner.clientCapabilities, method, params) ? { to: owner } : { refusedBecause: 'capability' }
}

/** Whether a client that declared these can be sent that request. */
export function declares(capabilities: JsonObject, method: string, params: JsonObject | undefined): boolean {
  switch (method) {
    case METHODS.createMessage:
      return isObject(capabilities['sampling'])
    case METHODS.rootsList:
      return isObject(capabilities['roots'])
    case METHODS.elicit:
      return declaresMode(capabilities['elicitation'], params?.['mode'])
    default:
      return false
  }
}

/** An empty declaration means forms only, as does a request without a mode. */
function declaresMode(elicitation: unknown, mode: unknown): boolean {
  if (!isObject(elicitation)) return false
  if (mode === 'url') return isObject(elicitation['url'])
  return isObject(elicitation['form']) || !('url' in elicitation)
}

/** A session that declares one of these may be asked something, so it gets a process of its own where there can be one. */
export function wantsOwnProcess(capabilities: JsonObject): boolean {
  return ['sampling', 'elicitation', 'roots'].some((name) => isObject(capabilities[name]))
}

/** Client capabilities that a shared process receives: all that the runner can relay, checked request by request. */
export const RELAYABLE_CAPABILITIES: JsonObject = { sampling: {}, elicitation: { form: {}, url: {} }, roots: {} }
