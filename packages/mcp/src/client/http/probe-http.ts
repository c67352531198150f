import { withTimeLimit } from '@thv/kernel/deadline'
import { isThvError } from '@thv/kernel/errors'
import { META } from '../../envelope.ts'
import type { FinalVerdict } from '../../era-cache.ts'
import { isErrorResponse, isObject, type JsonObject, type JsonRpcRequest } from '../../json-rpc.ts'
import { METHODS } from '../../methods.ts'
import { type ProbeOutcome, verdictOf } from '../../probe.ts'
import { MODERN_VERSION } from '../../versions.ts'
import type { ClientContext } from '../client-context.ts'
import type { ServerIdentity } from '../engine.ts'
import { httpError } from '../http-failure.ts'
import type { Link, LinkAnswer } from '../link.ts'

export interface ProbeReport {
  readonly verdict: FinalVerdict
  /** The server's description of itself, if the probe was answered with a result. */
  readonly identity: ServerIdentity | undefined
  /** The obstacle to a verdict. */
  readonly failure: unknown
}

/** Asks a server for its era by `server/discover`, which has no effect (§3.3), over a modern link. Says it twice if the first was refused. */
export async function probeEra(link: Link, context: ClientContext, signal: AbortSignal): Promise<ProbeReport> {
  const first = await probeOnce(link, context, signal)
  const verdict = verdictOf(first.outcome)
  if (verdict.verdict !== 'retry') return { verdict, identity: first.identity, failure: first.failure }
  const second = await probeOnce(link, context, signal)
  const last = verdictOf(second.outcome, true)
  if (last.verdict === 'retry') throw new RangeError('a second probe asks for no third')
  return { verdict: last, identity: second.identity, failure: second.failure }
}

interface ProbeTry {
  readonly outcome: ProbeOutcome
  readonly identity?: ServerIdentity | undefined
  readonly failure?: unknown
}

async function probeOnce(link: Link, context: ClientContext, signal: AbortSignal): Promise<ProbeTry> {
  const { clock, limits } = context
  const limit = { clock, timeoutMs: limits.probeTimeoutMs, what: METHODS.discover, signals: [signal] }
  try {
    const request = discoverRequest(context)
    const answer = await withTimeLimit(limit, (limited) => link.request(request, { signal: limited, receive: () => {} }))
    const { status, body } = answer
    return { outcome: { kind: 'http', status, body }, identity: identityIn(answer), failure: httpError(answer) }
  } catch (error) {
    if (signal.aborted || isThvError(error, 'usage')) throw error
    return { outcome: { kind: 'transport_failure' }, failure: error }
  }
}

/** A text as id: it cannot be taken for one of the requests that follow, should the answer come late. */
export function discoverRequest({ capabilities, clientInfo, nextId }: ClientContext): JsonRpcRequest {
  const _meta = { [META.protocolVersion]: MODERN_VERSION, [META.clientCapabilities]: capabilities, [META.clientInfo]: clientInfo }
  return { jsonrpc: '2.0', id: `discover-${nextId()}`, method: METHODS.discover, params: { _meta } }
}

/** Undefined unless it is a discover result. */
export function identityIn({ body }: LinkAnswer): ServerIdentity | undefined {
  if (body?.kind !== 'response' || isErrorResponse(body.message) || !isObject(body.message.result)) return undefined
  return identityOf(body.message.result)
}

export function identityOf(result: JsonObject): ServerIdentity {
  const { _meta: meta, capabilities, instructions } = result
  // In the body it is a shape from before the revision was final: read, never written.
  const serverInfo = (isObject(meta) ? meta[META.serverInfo] : undefined) ?? result['serverInfo']
  return {
    serverInfo: isObject(serverInfo) ? serverInfo : undefined,
    capabilities: isObject(capabilities) ? capabilities : {},
    instructions: typeof instructions === 'string' ? instructions : undefined,
  }
}
