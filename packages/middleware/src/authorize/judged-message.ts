import type { Hints, Operation, ToolOrigin } from '@thv/authz/access/operation'
import { isObject } from '@thv/kernel/json'
import { hasTwins, lookalikesOf } from '@thv/mcp/lookalike-names'
import { METHODS, NOTIFICATIONS } from '@thv/mcp/methods'
import { type Rejection, reject } from '@thv/mcp/wire-errors'
import type { MessageContext } from '../pipeline/request-context.ts'

/** How a message is judged. */
export type Judged =
  | { readonly by: 'decision'; readonly operation: Operation }
  /** The arguments are not known yet: some must be permitted. */
  | { readonly by: 'possibility'; readonly operation: Operation }
  /** The list is forwarded; a forbid makes it empty. */
  | { readonly by: 'forbid'; readonly operation: ListOperation }
  /** All of them must be permitted. */
  | { readonly by: 'decisions'; readonly operations: readonly Operation[] }

export type ListOperation = Extract<Operation, { readonly action: 'list_tools' | 'list_prompts' | 'list_resources' }>

/** The list actions by method. */
export const LISTS: ReadonlyMap<string, ListOperation> = new Map([
  [METHODS.toolsList, { action: 'list_tools' }],
  [METHODS.promptsList, { action: 'list_prompts' }],
  [METHODS.resourcesList, { action: 'list_resources' }],
  [METHODS.resourceTemplatesList, { action: 'list_resources' }],
])

/** Open to every caller: they set up the connection, or do nothing that a policy could be about. */
const OPEN: ReadonlySet<string> = new Set<string>([
  METHODS.initialize,
  METHODS.ping,
  METHODS.discover,
  METHODS.setLevel,
  METHODS.rootsList,
  ...Object.values(NOTIFICATIONS),
])

/** Undefined: passes without a decision. A rejection: cannot be judged, because a part that decides is missing or malformed. */
export function judgedBy(context: MessageContext, hints?: HintFacts): Judged | Rejection | undefined {
  const { outgoing, received } = context
  // A response to a request of the server: the request was sent to this client, so it may answer.
  if (outgoing.kind === 'response' || OPEN.has(outgoing.method)) return undefined
  const { method } = outgoing
  const params: unknown = outgoing.message.params
  const { name, uri, arguments: args, ref, notifications } = isObject(params) ? params : NO_PARAMS
  switch (method) {
    case METHODS.toolsCall: {
      if (typeof name !== 'string' || !isArguments(args)) return MALFORMED
      const visible: unknown = received.kind === 'response' ? name : received.message.params?.['name']
      const visibleName = typeof visible === 'string' ? visible : name
      return { by: 'decision', operation: { action: 'call_tool', name, visibleName, args: args ?? undefined, ...(hints ?? NO_HINTS) } }
    }
    case METHODS.promptsGet:
      if (typeof name !== 'string' || !isArguments(args)) return MALFORMED
      return { by: 'decision', operation: { action: 'get_prompt', name, args: args ?? undefined } }
    case METHODS.resourcesRead:
    case METHODS.resourcesSubscribe:
    case METHODS.resourcesUnsubscribe:
      return typeof uri === 'string' ? { by: 'decision', operation: { action: 'read_resource', uri } } : MALFORMED
    case METHODS.complete:
      return completion(ref)
    case METHODS.listen:
      if (isObject(notifications) && hasSubscriptionsLookalike(notifications)) return MALFORMED
      return subscriptions(isObject(notifications) ? notifications['resourceSubscriptions'] : undefined)
    default: {
      const operation = LISTS.get(method)
      if (operation !== undefined) return { by: 'forbid', operation }
      return { by: 'decision', operation: { action: 'request', method } }
    }
  }
}

/** Facts about the tool that a call names. */
export interface HintFacts {
  readonly hints: Hints | undefined
  /** Undefined: these are all. */
  readonly mayHaveMoreHints: boolean
  readonly origin?: ToolOrigin | undefined
}

const NO_HINTS: HintFacts = { hints: undefined, mayHaveMoreHints: false }

/** The name of the tool that the message calls, as the server has it. */
export function calledTool({ outgoing }: MessageContext): string | undefined {
  if (outgoing.kind === 'response' || outgoing.method !== METHODS.toolsCall) return undefined
  const params: unknown = outgoing.message.params
  const name = isObject(params) ? params['name'] : undefined
  return typeof name === 'string' ? name : undefined
}

const NO_PARAMS: Readonly<Record<string, unknown>> = {}

/** A server could read it in another way than we do. */
const MALFORMED: Rejection = reject('invalid_params', { detail: 'a name, a URI or the arguments are missing or malformed', inBand: true })

function isArguments(args: unknown): args is Readonly<Record<string, unknown>> | undefined | null {
  return args === undefined || args === null || (isObject(args) && !hasTwins(args))
}

const hasRefLookalike = lookalikesOf(['type', 'name', 'uri'])

/** Of what a client is about to use. */
function completion(ref: unknown): Judged | Rejection {
  const { type, name, uri } = isObject(ref) && !hasRefLookalike(ref) ? ref : NO_PARAMS
  if (type === 'ref/prompt' && typeof name === 'string')
    return { by: 'possibility', operation: { action: 'get_prompt', name, args: 'unknown' } }
  if (type === 'ref/resource' && typeof uri === 'string') return { by: 'possibility', operation: { action: 'read_resource', uri } }
  return MALFORMED
}

const hasSubscriptionsLookalike = lookalikesOf(['resourceSubscriptions'])

/** Each costs a decision, and nothing else is done meanwhile. */
const MAX_SUBSCRIPTIONS = 1_000
const TOO_MANY: Rejection = reject('invalid_params', { detail: `a stream may name ${MAX_SUBSCRIPTIONS} resources`, inBand: true })

/** A stream that names resources subscribes to them, as `resources/subscribe` does. */
function subscriptions(uris: unknown): Judged | Rejection | undefined {
  if (uris === undefined || uris === null) return undefined
  if (Array.isArray(uris) && uris.length > MAX_SUBSCRIPTIONS) return TOO_MANY
  if (!Array.isArray(uris) || !uris.every((uri) => typeof uri === 'string')) return MALFORMED
  return { by: 'decisions', operations: uris.map((uri: string) => ({ action: 'read_resource', uri })) }
}
