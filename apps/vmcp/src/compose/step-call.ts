import type { Clock } from '@thv/kernel/clock'
import { withTimeLimit } from '@thv/kernel/deadline'
import type { McpClient, RequestOptions } from '@thv/mcp/client/mcp-client'
import { isObject, type JsonObject } from '@thv/mcp/json-rpc'
import { METHODS } from '@thv/mcp/methods'
import { errorObjectOf, isRejection, type Rejection } from '@thv/mcp/wire-errors'
import type { Log } from '@thv/telemetry/log'
import type { ToolCall, ToolResult } from '@thv/workflow/workflow-host'
import type { Route } from '../aggregate/aggregate.ts'
import { failureText } from '../members/failure-text.ts'
import { LocalRefusal } from '../members/local-refusal.ts'
import type { Member } from '../members/member.ts'
import { callFailure } from '../route/call-failure.ts'
import { toolDestination } from '../route/find-route.ts'
import type { RetryPolicy } from '../route/retry-policy.ts'
import { sendRequest } from '../route/send-request.ts'
import { SilenceLimit } from '../route/silence-limit.ts'

export interface ToolLimits {
  /** Silence of the backend after which the call is given up. */
  readonly timeoutMs: number
  readonly retry: RetryPolicy | undefined
  readonly isIdempotent: boolean
}

/** How steps reach backends on behalf of one client. */
export interface StepClients {
  /** Ready to be used. Its options are those of every request. */
  clientOf(member: Member, signal: AbortSignal): Promise<{ readonly client: Pick<McpClient, 'request'>; readonly options: RequestOptions }>
  isAsking(): boolean
}

export interface StepDeps {
  readonly clock: Clock
  readonly log: Log
  member(name: string): Member | undefined
  toolLimits(route: Route, backend: string): ToolLimits
}

/** The caller has to log in to a provider first. The backend was not asked. */
export class StepNeedsLogin extends Error {
  readonly challenge: Rejection

  constructor(challenge: Rejection) {
    super(errorObjectOf(challenge).message)
    this.challenge = challenge
  }
}

/** Calls a backend's tool for a step. Throws StepNeedsLogin. Messages of errors name no backend: clients see them. */
export async function callStepTool(
  deps: StepDeps,
  { call, route, clients }: { readonly call: ToolCall; readonly route: Route | undefined; readonly clients: StepClients },
  signal: AbortSignal,
): Promise<ToolResult> {
  const found = route && toolDestination(route, { name: call.tool, arguments: call.arguments })
  if (found !== undefined && isRejection(found)) throw new Error(errorObjectOf(found).message)
  const member = found && deps.member(found.backend)
  if (route === undefined || found === undefined || member === undefined) throw new Error('the tool is not offered any more')
  if (member.health.admit() !== undefined) throw new Error('the tool is unavailable')
  const { timeoutMs, retry, isIdempotent } = deps.toolLimits(route, member.name)
  const giveUp = new AbortController()
  const silence = new SilenceLimit({
    ...{ clock: deps.clock, timeoutMs, isAsking: () => clients.isAsking() },
    onSilent: (error) => giveUp.abort(error),
  })
  silence.heard()
  try {
    const limit = { clock: deps.clock, timeoutMs: Number.POSITIVE_INFINITY, what: 'the call', signals: [signal, giveUp.signal] }
    return await withTimeLimit(limit, async (inner) => {
      const { client, options } = await clients.clientOf(member, inner)
      const heard = { onProgress: () => silence.heard(), onNotification: () => silence.heard() }
      const attempt = () => client.request(METHODS.toolsCall, found.params, { ...options, ...heard, signal: inner })
      return toolResult(await sendRequest(member, attempt, { clock: deps.clock, signal: () => inner, retry, isIdempotent }))
    })
  } catch (error) {
    signal.throwIfAborted()
    const challenge = error instanceof LocalRefusal ? error.challenge : undefined
    if (challenge !== undefined) throw new StepNeedsLogin(challenge)
    const failure = callFailure(error, { backend: member.name, timeoutMs })
    if (!failure?.isAnswer)
      deps.log.warn('a step failed at a backend', { backend: member.name, step: call.step, error: failureText(error) })
    // Without the cause, which knows addresses: its text would reach the client.
    throw new Error(failure?.error.message ?? 'the call failed')
  } finally {
    silence.end()
  }
}

/** A result with anything but an object as structured content has its content only. */
function toolResult({ content, structuredContent, isError, resultType }: JsonObject): ToolResult {
  if (resultType !== undefined && resultType !== 'complete') throw new Error('the tool asks for input, which a step cannot give')
  return {
    content: (Array.isArray(content) ? content.filter(isObject) : []) as ToolResult['content'],
    ...(isObject(structuredContent) && { structuredContent: structuredContent as NonNullable<ToolResult['structuredContent']> }),
    ...(isError === true && { isError }),
  }
}
