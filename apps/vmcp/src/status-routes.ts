import type { Route } from '@thv/gateway/gateway'
import type { Exchange } from '@thv/http/server/exchange'
import { sendJson, sendMethodNotAllowed } from '@thv/http/server/respond'
import type { LiveServer } from './live/live-server.ts'
import type { Offer } from './offer.ts'
import type { VirtualBackend } from './virtual-backend.ts'

export interface StatusDeps {
  readonly offer: Offer
  readonly backend: VirtualBackend
  readonly live: LiveServer
  readonly version: string
}

const HEADERS = ['Cache-Control', 'no-store', 'X-Content-Type-Options', 'nosniff']
const MAX_NAMED = 20

/** `/readyz` is open; `/status` and `/api/backends/health` name backends, so they are guarded as the MCP endpoint is. */
export function statusRoutes(deps: StatusDeps): Readonly<Record<string, Route>> {
  const { backend } = deps
  return {
    '/readyz': {
      guarded: false,
      handle: (exchange) => {
        const { ready, message } = backend.status
        const body = ready
          ? { status: 'ready', mode: modeOf(deps) }
          : { status: 'not_ready', mode: modeOf(deps), reason: message.replaceAll(' ', '_') }
        answer(exchange, body, ready ? 200 : 503)
      },
    },
    '/status': { guarded: true, handle: (exchange) => answer(exchange, statusOf(deps)) },
    '/api/backends/health': { guarded: true, handle: (exchange) => answer(exchange, healthOf(deps)) },
  }
}

function answer(exchange: Exchange, body: unknown, status = 200): void {
  if (exchange.method === 'GET' || exchange.method === 'HEAD') sendJson(exchange, body, { status, headers: HEADERS })
  else sendMethodNotAllowed(exchange, 'GET, HEAD')
}

function modeOf({ offer }: StatusDeps): 'dynamic' | 'static' {
  return offer.config.outgoingAuth.source === 'discovered' ? 'dynamic' : 'static'
}

export function statusOf({ offer, version, live }: Omit<StatusDeps, 'backend'>) {
  const { hash, loadedAt, problem, needsRestart } = live.live.state
  const { leftOut, warnings } = live.discovered
  const backends = offer.members.map(({ name, health, backend, shared }) => ({
    name,
    health: health.status,
    transport: backend.transport,
    auth_type: backend.authType,
    mcp_revision: shared.protocolVersion ?? null,
    circuit: health.circuit,
  }))
  const { offered, leftOut: compositesLeftOut, warnings: compositeWarnings } = offer.view.composites
  const { conflicts, tools, prompts, resources, resourceTemplates } = offer.view.now
  const { moved } = offer.view
  // With policies a caller may not see every tool, and so not its name either.
  const named = offer.config.incomingAuth.authz?.type === 'cedar' ? 0 : MAX_NAMED
  return {
    backends,
    healthy: backends.some(({ health }) => health === 'healthy'),
    version,
    group_ref: offer.config.groupRef,
    // With `memory` one replica alone may run: another one knows none of its sessions.
    session_storage: offer.config.sessionStorage.provider,
    config: { hash, loaded_at: loadedAt, problem: problem ?? null, needs_restart: needsRestart },
    left_out: leftOut.slice(0, MAX_NAMED),
    warnings: warnings.slice(0, MAX_NAMED),
    offered: {
      tools: tools.size + offered.size,
      ...{ prompts: prompts.size, resources: resources.size, resource_templates: resourceTemplates.size },
    },
    composite_tools:
      named === 0
        ? { total: offered.size, left_out_total: compositesLeftOut.length }
        : {
            ...{ total: offered.size, left_out_total: compositesLeftOut.length },
            offered: [...offered.keys()].slice(0, named),
            left_out: compositesLeftOut.slice(0, named),
            warnings: compositeWarnings.slice(0, named),
          },
    conflicts: { total: conflicts.length, ...(named > 0 && { named: conflicts.slice(0, named) }) },
    moved: { total: moved.length, ...(named > 0 && { named: moved.slice(0, named) }) },
  }
}

function healthOf({ offer }: StatusDeps) {
  const counts = { Total: offer.members.length, Healthy: 0, Degraded: 0, Unhealthy: 0, Unknown: 0, Unauthenticated: 0 }
  const backends: Record<string, unknown> = {}
  for (const { name, health, shared } of offer.members) {
    const { status } = health
    counts[COUNTER[status]]++
    backends[name] = { ...health.report, MCPRevision: shared.protocolVersion ?? '' }
  }
  return { monitoring_enabled: true, summary: counts, backends }
}

const COUNTER = { unknown: 'Unknown', healthy: 'Healthy', degraded: 'Degraded', unhealthy: 'Unhealthy' } as const
