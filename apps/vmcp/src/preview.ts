import { createOutbound } from '@thv/http/outbound/outbound'
import type { Clock } from '@thv/kernel/clock'
import { endsWithin } from '@thv/kernel/deadline'
import { BackendEras } from '@thv/mcp/client/http/backend-eras'
import type { Log } from '@thv/telemetry/log'
import type { VmcpConfig } from '@thv/vmcpconfig/vmcp-config'
import type { Route, View } from './aggregate/aggregate.ts'
import type { Conflict } from './aggregate/conflict.ts'
import { type CompositeOffer, type CompositeOffers, NO_COMPOSITES } from './compose/composite-offers.ts'
import type { Discovered } from './discover/discovered-backends.ts'
import { MemberRoster } from './members/member-roster.ts'
import { viewSettings } from './view/built-view.ts'
import { ViewCache } from './view/view-cache.ts'

export interface Preview {
  /** Every name with its backend, real name and reason. */
  readonly lines: readonly string[]
  /** Backends without an answer, and names that are offered by none of their backends. */
  readonly problems: readonly string[]
}

export interface PreviewDeps {
  readonly clock: Clock
  readonly log: Log
  readonly version: string
}

const LIMIT_MS = 30_000
const HEALTH = { unhealthyThreshold: 1, circuit: { enabled: false, failureThreshold: 1, timeoutMs: 1_000 } }

/** Connects to all backends once and tells what clients would see. */
export async function preview(config: VmcpConfig, { backends, leftOut }: Discovered, deps: PreviewDeps): Promise<Preview> {
  const { clock, log, version } = deps
  await using outbound = createOutbound({ clock })
  const eras = new BackendEras({ clock })
  await using providers = createOutbound({ clock })
  const roster = new MemberRoster({ outbound, providers, eras, clock, log, version })
  roster.apply(backends, HEALTH)
  const cache = new ViewCache({ roster, settings: viewSettings(config), clock, log })
  try {
    cache.start()
    await endsWithin(cache.attempted, LIMIT_MS, clock)
    const absent = leftOut.map(({ kind, name, message }) => `${kind} ${name} is no backend: ${message}`)
    const silent = roster.all
      .filter(({ health, isPerCaller }) => health.status !== 'healthy' && !isPerCaller)
      .map(({ name }) => `backend ${name} did not answer`)
    const hidden = roster.all.filter(({ isPerCaller }) => isPerCaller).map(({ name }) => `  ${name}  needs the token of a caller`)
    const seen = previewOf(cache.now, [...absent, ...silent, ...unlisted(config, cache)], cache.composites)
    return hidden.length === 0 ? seen : { ...seen, lines: [...seen.lines, 'not shown:', ...hidden] }
  } finally {
    await cache.close()
    await roster.close()
    eras.close()
  }
}

/** Names of tools in the configuration that no backend has. */
function unlisted({ optimizer, operational }: VmcpConfig, { now, composites }: ViewCache): readonly string[] {
  const listed = (optimizer?.alwaysListed ?? []).filter((name) => !now.tools.has(name) && !composites.offered.has(name))
  const limited = Object.keys(operational.timeouts.perTool).filter((name) => !now.tools.has(name) && !now.hiddenTools.has(name))
  return [
    ...listed.map((name) => `optimizer.alwaysListed names ${name}, which no backend offers`),
    ...limited.map((name) => `operational.timeouts.perTool names ${name}, which no backend offers`),
  ]
}

/** Pure. */
export function previewOf(view: View, silent: readonly string[], composites: CompositeOffers = NO_COMPOSITES): Preview {
  const { offered, leftOut, warnings } = composites
  const unresolved = view.conflicts.filter(({ outcome }) => outcome === 'unresolved')
  return {
    lines: [
      ...section('tools', view.tools),
      ...(offered.size > 0 ? ['composite tools:', ...[...offered.values()].map(compositeLine)] : []),
      ...section('hidden tools', view.hiddenTools),
      ...section('prompts', view.prompts),
      ...section('resources', view.resources),
      ...section('resource templates', view.resourceTemplates),
      ...(warnings.length > 0 ? ['warnings:', ...warnings.map((warning) => `  ${warning}`)] : []),
      ...(view.conflicts.length > 0 ? ['conflicts:', ...view.conflicts.map((conflict) => `  ${conflictLine(conflict)}`)] : []),
    ],
    problems: [
      ...silent,
      ...leftOut.map(({ name, reason }) => `composite tool ${name} is not offered: ${reason}`),
      ...unresolved.map(({ kind, name, backend }) => `${kind} ${name} of ${backend} is not offered: nothing says who gets the name`),
    ],
  }
}

function compositeLine({ name, targets }: CompositeOffer): string {
  const tools = [...targets].map(([tool, { backend, original }]) =>
    tool === `${backend}.${original}` ? tool : `${tool} (${backend} ${original})`,
  )
  return `  ${name}  ${tools.join(', ')}`
}

function section(title: string, routes: ReadonlyMap<string, Route>): readonly string[] {
  if (routes.size === 0) return []
  return [`${title}:`, ...[...routes.values()].map((route) => `  ${route.key}  ${targetOf(route)}`)]
}

function targetOf({ key, backend, original, selector }: Route): string {
  if (selector !== undefined) return `${[...selector.backends.keys()].join(', ')} by argument ${selector.argument}`
  return original === key ? backend : `${backend} ${original}`
}

function conflictLine({ kind, outcome, backend, original, name, as, winner }: Conflict): string {
  const what = `${kind} ${original === name ? name : `${name} (${original})`} of ${backend}`
  switch (outcome) {
    case 'lost':
      return `${what} is not offered: ${winner ?? 'a tool of the virtual server itself'} has the name`
    case 'renamed':
      return `${what} is offered as ${as}`
    case 'unresolved':
      return `${what} is not offered: nothing says who gets the name`
    case 'duplicate':
      return `${what} is listed twice`
    default:
      return `${what} has no usable name`
  }
}
