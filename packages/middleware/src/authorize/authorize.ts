import type { Hints, ToolOrigin } from '@thv/authz/access/operation'
import type { PolicyBundle } from '@thv/authz/load/load-policies'
import type { JsonObject } from '@thv/mcp/json-rpc'
import { LIST_MEMBERS, METHODS } from '@thv/mcp/methods'
import { isRejection, type Rejection, reject } from '@thv/mcp/wire-errors'
import type { Awaitable, Middleware } from '../pipeline/middleware.ts'
import type { MessageContext, RequestContext } from '../pipeline/request-context.ts'
import { calledTool, type HintFacts, type Judged, judgedBy, LISTS } from './judged-message.ts'
import { listedOperation } from './listed-item.ts'
import { ListedTools } from './listed-tools.ts'
import { outcomeOf } from './policy-outcome.ts'
import type { KnownHints, ToolHints } from './tool-hints.ts'

/** The policies in force. A reload replaces the whole bundle. */
export interface PolicyHolder {
  readonly current: PolicyBundle
}

export interface AuthorizeDeps {
  readonly policies: PolicyHolder
  /** The name that clients see of a tool, where it differs from the one at the server. */
  readonly visibleName: (name: string) => string
  /** Hints that the configuration sets for a tool: they win over those of the server. */
  readonly hintOverrides: (name: string) => Hints | undefined
  /** The backend of a tool and its name there, behind a virtual server. */
  readonly originOf?: ((name: string) => ToolOrigin | undefined) | undefined
  /** The tool searches among the tools: it is judged as their list is, and its results as the items of the list are. */
  readonly isSearch?: ((name: string) => boolean) | undefined
  /** Hints of the server. Absent: they are never known, and policies that depend on them permit nothing. */
  readonly toolHints?: ToolHints | undefined
  /** The answer to a call that further scopes would permit. Absent where clients have no tokens. */
  readonly insufficientScope?: ((context: RequestContext, scopes: readonly string[]) => Rejection) | undefined
  /** Called for every decision. */
  readonly onDecision?: ((decision: 'allow' | 'deny') => void) | undefined
  /** Called where the candidate policies decide otherwise than those in force. */
  readonly onDifference?: ((candidate: 'allow' | 'deny') => void) | undefined
}

/**
 * Judges every POSTed message by policies, and shows in lists only what some call could be permitted. A denied call is answered with one
 * text, whatever the reason and whether or not the thing exists.
 */
export function createAuthorize(given: AuthorizeDeps): Middleware {
  const deps: Judge = { ...given, listed: new ListedTools() }
  return {
    name: 'authorization',
    message: (context) => judgeMessage(context, deps),
    edits: [...LIST_MEMBERS.keys()],
    editsPerCaller: true,
    item(context, item, method) {
      if (method === METHODS.toolsList && typeof item['name'] === 'string') deps.listed.note(item['name'])
      return isShown(context, deps, { item, method }) ? item : undefined
    },
    toolsChanged() {
      deps.listed.clear()
      deps.toolHints?.changed()
    },
    close: async () => deps.toolHints?.close(),
  }
}

interface Judge extends AuthorizeDeps {
  readonly listed: ListedTools
}

const DENIED: Rejection = reject('access_denied')

function judgeMessage(context: MessageContext, deps: Judge): Awaitable<Rejection | undefined> {
  const tool = calledTool(context)
  if (tool === undefined) return judge(context, deps)
  if (deps.isSearch?.(tool) === true) return judgeSearch(context, deps)
  const overrides = deps.hintOverrides(tool)
  const origin = deps.originOf?.(tool)
  if (!readsHints(deps)) return judge(context, deps, { hints: overrides, mayHaveMoreHints: false, origin })
  const given = deps.toolHints === undefined ? 'unknown' : deps.toolHints.of(context, tool)
  if (given instanceof Promise) return given.then((settled) => judge(context, deps, { ...hintFacts(settled, overrides), origin }))
  return judge(context, deps, { ...hintFacts(given, overrides), origin })
}

function judgeSearch(context: MessageContext, deps: Judge): undefined {
  recordOutcome(context, { by: 'forbid', operation: { action: 'list_tools' } }, deps)
}

function readsHints({ policies: { current } }: AuthorizeDeps): boolean {
  return current.enforced.readsHints || current.candidate?.readsHints === true
}

function hintFacts(given: KnownHints, overrides: Hints | undefined): HintFacts {
  if (given === 'unknown') return { hints: overrides, mayHaveMoreHints: true }
  return { hints: overrides === undefined ? given : { ...given, ...overrides }, mayHaveMoreHints: false }
}

function judge(context: MessageContext, deps: Judge, hints?: HintFacts): Rejection | undefined {
  const judged = judgedBy(context, hints)
  if (judged === undefined || isRejection(judged)) return judged
  const { decision } = recordOutcome(context, judged, deps)
  return decision === 'deny' && judged.by !== 'forbid' ? denial(context, judged, deps) : undefined
}

/** Says which scopes are missing only where they would be enough. */
function denial(context: MessageContext, judged: Judged, { policies, insufficientScope }: AuthorizeDeps): Rejection {
  if (insufficientScope === undefined || judged.by !== 'decision') return DENIED
  const scopes = policies.current.enforced.scopesFor(context.caller.identity, judged.operation)
  return scopes === undefined ? DENIED : insufficientScope(context, scopes)
}

function recordOutcome(context: MessageContext, judged: Judged, { policies, listed, onDecision, onDifference }: Judge) {
  const { enforced, candidate } = policies.current
  const { identity } = context.caller
  const outcome = outcomeOf(enforced, identity, judged)
  const other = candidate && outcomeOf(candidate, identity, judged)
  const differs = other !== undefined && other.decision !== outcome.decision
  onDecision?.(outcome.decision)
  if (differs) onDifference?.(other.decision)
  const tool = outcome.decision === 'deny' ? calledTool(context) : undefined
  context.authz = {
    ...outcome,
    candidate: differs ? other : undefined,
    isListed: tool === undefined ? undefined : listed.has(tool),
  }
  return outcome
}

function isShown(context: RequestContext, deps: AuthorizeDeps, { item, method }: { item: JsonObject; method: string }): boolean {
  const { enforced } = deps.policies.current
  const { identity } = context.caller
  if (method === METHODS.toolsList && typeof item['name'] === 'string' && deps.isSearch?.(item['name']) === true)
    return !isForbiddenList(context, deps, method)
  if (method === METHODS.toolsList && typeof item['name'] === 'string' && readsHints(deps))
    deps.toolHints?.seen(context, item['name'], item)
  if (isForbiddenList(context, deps, method)) return false
  const operation = listedOperation(item, method, deps)
  return operation !== undefined && enforced.isShown(identity, operation)
}

/** Judged with the request, except on a resumed stream: there the request is unknown. */
function isForbiddenList({ authz, received, caller }: RequestContext, { policies }: AuthorizeDeps, method: string): boolean {
  if (authz !== undefined && received?.method === method) return authz.decision === 'deny'
  const list = LISTS.get(method)
  return list === undefined || !policies.current.enforced.decideForbids(caller.identity, list).allowed
}
