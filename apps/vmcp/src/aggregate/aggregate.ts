import type { JsonObject } from '@thv/mcp/json-rpc'
import type { AggregationConfig } from '@thv/vmcpconfig/vmcp-config'
import { type BackendLists, byCodePoint, type ItemKind, sortedByBackend } from './backend-lists.ts'
import { type Candidate, namedItems, toolCandidates } from './candidates.ts'
import type { Conflict } from './conflict.ts'
import { isLegalName, legalName } from './legal-names.ts'
import { applyStrategy, type Named, prefixed } from './strategies.ts'

/** One item as clients see it, and where it leads. */
export interface Route {
  /** Name or URI that clients use. */
  readonly key: string
  readonly backend: string
  /** Name or URI at the backend. */
  readonly original: string
  /** As listed, under the name that clients use. */
  readonly item: JsonObject
  /** One tool for several backends: the argument that names the backend, and the name of the tool at each. */
  readonly selector?: { readonly argument: string; readonly backends: ReadonlyMap<string, string> }
}

/** The offer of a virtual server. Routes are sorted by key. */
export interface View {
  readonly tools: ReadonlyMap<string, Route>
  /** Tools that no client sees; composite tools may call them. */
  readonly hiddenTools: ReadonlyMap<string, Route>
  readonly prompts: ReadonlyMap<string, Route>
  readonly resources: ReadonlyMap<string, Route>
  readonly resourceTemplates: ReadonlyMap<string, Route>
  readonly conflicts: readonly Conflict[]
}

export interface AggregateOptions {
  readonly config: AggregationConfig
  /** Names of composite tools: they win over the tools of backends. */
  readonly reservedNames?: ReadonlySet<string>
}

/** Joins the lists of all backends. Pure; the order of the backends, and of the items of one backend, makes no difference. */
export function aggregate(lists: readonly BackendLists[], { config, reservedNames = new Set() }: AggregateOptions): View {
  const conflicts: Conflict[] = []
  const report = (conflict: Conflict) => void conflicts.push(conflict)
  const { visible, hidden } = toolCandidates(lists, config, report)
  const replaced: Candidate[] = []
  const onReserved = (candidate: Candidate) => void replaced.push(candidate)
  const named = applyStrategy({ kind: 'tool', candidates: visible, config, report })
  const tools = routesOf('tool', named, { reservedNames, onReserved, report })
  const candidates = sortedByBackend(lists).flatMap(({ backend, prompts: items }) =>
    namedItems({ kind: 'prompt', backend, items, key: 'name' }, report),
  )
  const prompts = routesOf('prompt', applyStrategy({ kind: 'prompt', candidates, config, report }), { reservedNames: new Set(), report })
  return {
    tools,
    hiddenTools: hiddenRoutes([...hidden, ...replaced], (name) => tools.has(name) || reservedNames.has(name), config),
    prompts,
    resources: uriRoutes('resource', lists, report),
    resourceTemplates: uriRoutes('resourceTemplate', lists, report),
    conflicts: conflicts.toSorted(inReportOrder),
  }
}

interface Naming {
  readonly reservedNames: ReadonlySet<string>
  /** A composite tool has the name of this one, and may still call it. */
  readonly onReserved?: (candidate: Candidate) => void
  readonly report: (conflict: Conflict) => void
}

/** Makes names legal and unique: of two items with one name the first by backend and name keeps it. */
function routesOf(kind: ItemKind, named: readonly Named[], { reservedNames, onReserved, report }: Naming): ReadonlyMap<string, Route> {
  const ordered = named.toSorted((a, b) => inOrder(a.candidate, b.candidate))
  const taken = new Map<string, Route>()
  // Names that are legal as they are come first: no changed name takes theirs.
  for (const isLegalTurn of [true, false]) {
    for (const each of ordered) {
      if (isLegalName(each.name) !== isLegalTurn) continue
      const { backend, original } = each.candidate
      const key = legalName(each.name, (name) => taken.has(name) || reservedNames.has(name))
      const holder = taken.get(key)
      if (holder !== undefined || reservedNames.has(key)) {
        // A tool of several backends is lost for each of them.
        for (const [owner, name] of each.selector?.backends ?? [[backend, original]])
          report({ kind, outcome: 'lost', backend: owner, original: name, name: key, winner: holder?.backend })
        if (holder === undefined) onReserved?.(each.candidate)
      } else {
        taken.set(key, routeOf(key, each))
        if (each.isRenamed || key !== each.name) report({ kind, outcome: 'renamed', backend, original, name: each.candidate.name, as: key })
      }
    }
  }
  return sortedByKey(taken)
}

/** Candidates of lists that have not changed keep their routes, so that those are not written again. */
const routes = new WeakMap<Candidate, Route>()

function routeOf(key: string, { candidate, selector }: Named): Route {
  const before = selector === undefined ? routes.get(candidate) : undefined
  if (before?.key === key) return before
  const { backend, original, item } = candidate
  const route = { key, backend, original, item: { ...item, name: key }, ...(selector && { selector }) }
  if (selector === undefined) routes.set(candidate, route)
  return route
}

/** Hidden tools never take a name that clients see, and are no conflict worth a report. */
function hiddenRoutes(hidden: readonly Candidate[], isSeen: (name: string) => boolean, config: AggregationConfig) {
  const found = new Map<string, Route>()
  const isTaken = (name: string) => isSeen(name) || found.has(name)
  for (const candidate of hidden) {
    const withPrefix = prefixed(candidate, config, false)
    const isBare = config.conflictResolution !== 'prefix' && !isTaken(candidate.name)
    const named = isBare ? { ...withPrefix, name: candidate.name } : withPrefix
    const key = legalName(named.name, isTaken)
    if (!isTaken(key)) found.set(key, routeOf(key, named))
  }
  return sortedByKey(found)
}

/** URIs are never changed, as other systems may know them: of two backends with one the first by name has it. */
function uriRoutes(kind: 'resource' | 'resourceTemplate', lists: readonly BackendLists[], report: Naming['report']) {
  const found = new Map<string, Route>()
  const [member, key] = kind === 'resource' ? (['resources', 'uri'] as const) : (['resourceTemplates', 'uriTemplate'] as const)
  for (const list of sortedByBackend(lists)) {
    const { backend } = list
    for (const { original, item } of namedItems({ kind, backend, items: list[member], key }, report)) {
      const holder = found.get(original)
      if (holder === undefined) found.set(original, { key: original, backend, original, item })
      else report({ kind, outcome: 'lost', backend, original, name: original, winner: holder.backend })
    }
  }
  return sortedByKey(found)
}

export function sortedByKey<T>(routes: ReadonlyMap<string, T>): ReadonlyMap<string, T> {
  return new Map([...routes].toSorted(([a], [b]) => byCodePoint(a, b)))
}

function inOrder(a: Candidate, b: Candidate): number {
  return byCodePoint(a.backend, b.backend) || byCodePoint(a.name, b.name) || byCodePoint(a.original, b.original)
}

function inReportOrder(a: Conflict, b: Conflict): number {
  return (
    byCodePoint(a.kind, b.kind) ||
    byCodePoint(a.name, b.name) ||
    byCodePoint(a.backend, b.backend) ||
    byCodePoint(a.original, b.original) ||
    byCodePoint(a.outcome, b.outcome)
  )
}
