import { METHODS } from '@thv/mcp/methods'
import { type Rejection, reject } from '@thv/mcp/wire-errors'
import type { Awaitable, Middleware } from '../pipeline/middleware.ts'
import type { MessageContext } from '../pipeline/request-context.ts'
import type { Limit, LimitReached } from './limit.ts'

export interface RateLimitOptions {
  readonly limits: readonly Limit[]
  /** Metered besides `tools/call`. */
  readonly methods: readonly string[]
}

export interface RateLimitDeps {
  readonly buckets: Buckets
}

/** Takes one token for each limit, or none. */
export interface Buckets {
  take(limits: readonly Limit[], principal: string): Awaitable<LimitReached | undefined>
}

const ALLOWED = { reached: undefined } as const

/**
 * Meters requests by token buckets. A call passes the limits of the server, of its user and of its tool together, or takes nothing from
 * any of them. A tool's limit binds its visible and its real name.
 */
export function createRateLimit({ limits, methods }: RateLimitOptions, { buckets }: RateLimitDeps): Middleware {
  const metered: ReadonlySet<string> = new Set([METHODS.toolsCall, ...methods])
  const common = limits.filter(({ tool }) => tool === undefined)
  const byTool = new Map<string, readonly Limit[]>()
  for (const { tool } of limits) {
    if (tool !== undefined) byTool.set(tool, [...common, ...limits.filter((limit) => limit.tool === tool)])
  }

  function limitsOf({ received, outgoing }: MessageContext): readonly Limit[] {
    if (outgoing.method !== METHODS.toolsCall || byTool.size === 0) return common
    const visible = toolOf(received)
    const real = toolOf(outgoing)
    const own = byTool.get(visible)
    if (real === visible) return own ?? common
    const ofReal = byTool.get(real)
    if (own === undefined || ofReal === undefined) return own ?? ofReal ?? common
    return [...own, ...ofReal.filter(({ tool }) => tool !== undefined)]
  }

  return {
    name: 'ratelimit',
    message(context) {
      const { outgoing, caller } = context
      if (outgoing.kind !== 'request' || !metered.has(outgoing.method)) return undefined
      const applied = limitsOf(context)
      if (applied.length === 0) return undefined
      const reached = buckets.take(applied, caller.principal)
      return reached instanceof Promise ? reached.then((outcome) => judge(context, outcome)) : judge(context, reached)
    },
  }
}

function judge(context: MessageContext, reached: LimitReached | undefined): Rejection | undefined {
  if (reached === undefined) {
    context.rateLimit = ALLOWED
    return undefined
  }
  context.rateLimit = { reached: reached.limit.scope }
  return rejectionOf(reached)
}

function toolOf(message: MessageContext['received']): string {
  const name = message.kind === 'request' ? message.message.params?.['name'] : undefined
  return typeof name === 'string' ? name : ''
}

function rejectionOf({ waitMs }: LimitReached): Rejection {
  const retryAfterSeconds = Math.max(1, Math.ceil(waitMs / 1_000 - 1e-6)) // fractions of refills add up
  return reject('rate_limited', { data: { retryAfterSeconds }, headers: { 'retry-after': String(retryAfterSeconds) } })
}
