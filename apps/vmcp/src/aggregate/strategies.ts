import { jsonEqual } from '@thv/kernel/json'
import { isObject, type JsonObject } from '@thv/mcp/json-rpc'
import type { AggregationConfig } from '@thv/vmcpconfig/vmcp-config'
import type { ItemKind } from './backend-lists.ts'
import type { Candidate } from './candidates.ts'
import type { Conflict } from './conflict.ts'

/** A candidate with the name that its strategy gives it; not yet legal, and not yet unique. */
export interface Named {
  readonly candidate: Candidate
  readonly name: string
  /** The strategy gave it another name because of a conflict. */
  readonly isRenamed: boolean
  /** All backends behind one tool, where the client chooses. */
  readonly selector?: { readonly argument: string; readonly backends: ReadonlyMap<string, string> }
}

export interface StrategyInput {
  readonly kind: Extract<ItemKind, 'tool' | 'prompt'>
  readonly candidates: readonly Candidate[]
  readonly config: AggregationConfig
  readonly report: (conflict: Conflict) => void
}

/** Settles who gets which name. The candidates come in their order, and so do the results. */
export function applyStrategy(input: StrategyInput): readonly Named[] {
  const { candidates, config } = input
  if (config.conflictResolution === 'prefix') return candidates.map((candidate) => prefixed(candidate, config, false))
  return [...groupedByName(candidates).values()].flatMap((group) => {
    const [only] = group
    return group.length === 1 && only !== undefined ? [bare(only)] : settle(group, input)
  })
}

function settle(group: readonly Candidate[], input: StrategyInput): readonly Named[] {
  const { config, kind } = input
  switch (config.conflictResolution) {
    case 'priority':
      return byPriority(group, input)
    case 'manual':
      return kind === 'tool' ? byHand(group, input) : allPrefixed(group, config)
    case 'selector':
      return kind === 'tool' ? selected(group, config) : allPrefixed(group, config)
    default:
      return allPrefixed(group, config)
  }
}

/** A listed backend wins over those after it and over all that are not listed. */
function byPriority(group: readonly Candidate[], { config, kind, report }: StrategyInput): readonly Named[] {
  const order = config.conflictResolutionConfig.priorityOrder
  const rank = ({ backend }: Candidate) => (order.includes(backend) ? order.indexOf(backend) : Infinity)
  const [winner, ...losers] = group.toSorted((a, b) => (rank(a) === rank(b) ? 0 : rank(a) - rank(b)))
  if (winner === undefined || rank(winner) === Infinity) return allPrefixed(group, config)
  for (const { backend, original, name } of losers) report({ kind, outcome: 'lost', backend, original, name, winner: winner.backend })
  return [bare(winner)]
}

/** The file says who wins; where it does not, the name is not offered. */
function byHand(group: readonly Candidate[], { config, kind, report }: StrategyInput): readonly Named[] {
  const { winners } = config.conflictResolutionConfig
  const [first] = group
  const chosen = first !== undefined && Object.hasOwn(winners, first.name) ? winners[first.name] : undefined
  const winner = group.find(({ backend }) => backend === chosen)
  for (const candidate of group) {
    if (candidate === winner) continue
    const { backend, original, name } = candidate
    report({ kind, backend, original, name, ...(winner ? { outcome: 'lost', winner: winner.backend } : { outcome: 'unresolved' }) })
  }
  return winner === undefined ? [] : [bare(winner)]
}

/** Equal tools become one that asks for the backend; others keep apart by prefix. */
function selected(group: readonly Candidate[], config: AggregationConfig): readonly Named[] {
  const [first] = group
  const argument = config.conflictResolutionConfig.selectorArgument
  if (first === undefined) return []
  const schema = first.item['inputSchema']
  const isSame = isObject(schema) && !hasProperty(schema, argument) && group.every(({ item }) => jsonEqual(item['inputSchema'], schema))
  if (!isSame) return allPrefixed(group, config)
  const backends = new Map(group.map(({ backend, original }) => [backend, original]))
  const item = { ...first.item, inputSchema: withArgument(schema, argument, [...backends.keys()]) }
  return [{ candidate: { ...first, item }, name: first.name, isRenamed: false, selector: { argument, backends } }]
}

function hasProperty({ properties }: JsonObject, name: string): boolean {
  return isObject(properties) && Object.hasOwn(properties, name)
}

function withArgument(schema: JsonObject, argument: string, backends: readonly string[]): JsonObject {
  const properties = isObject(schema['properties']) ? schema['properties'] : {}
  const required = Array.isArray(schema['required']) ? schema['required'] : []
  const choice = { type: 'string', enum: backends, description: 'The server that carries out the call.' }
  return { ...schema, type: 'object', properties: { [argument]: choice, ...properties }, required: [argument, ...required] }
}

function allPrefixed(group: readonly Candidate[], config: AggregationConfig): readonly Named[] {
  return group.map((candidate) => prefixed(candidate, config, true))
}

export function prefixed(candidate: Candidate, config: AggregationConfig, isRenamed: boolean): Named {
  const prefix = config.conflictResolutionConfig.prefixFormat.replaceAll('{workload}', () => candidate.backend)
  return { candidate, name: prefix + candidate.name, isRenamed }
}

function bare(candidate: Candidate): Named {
  return { candidate, name: candidate.name, isRenamed: false }
}

function groupedByName(candidates: readonly Candidate[]): ReadonlyMap<string, readonly Candidate[]> {
  return Map.groupBy(candidates, ({ name }) => name)
}
