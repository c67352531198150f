import { isObject, type JsonObject } from '@thv/mcp/json-rpc'
import type { AggregationConfig, WorkloadToolsConfig } from '@thv/vmcpconfig/vmcp-config'
import { type BackendLists, byCodePoint, type ItemKind, sortedByBackend } from './backend-lists.ts'
import type { Conflict } from './conflict.ts'
import { soundItem } from './sound-item.ts'

/** One item of one backend on its way to a name. */
export interface Candidate {
  readonly backend: string
  readonly original: string
  /** After overrides, before any prefix. */
  readonly name: string
  readonly item: JsonObject
}

/** The tools of all backends after overrides, ordered by backend and name: those that clients may see, and the hidden ones. */
export function toolCandidates(lists: readonly BackendLists[], config: AggregationConfig, report: (conflict: Conflict) => void) {
  const entries = new Map(config.tools.map((entry) => [entry.workload, entry]))
  const visible: Candidate[] = []
  const hidden: Candidate[] = []
  for (const list of sortedByBackend(lists)) {
    const entry = entries.get(list.backend)
    const { candidates, conflicts } = ownTools(list, entry)
    for (const conflict of conflicts) report(conflict)
    for (const tool of candidates) (isVisible(tool.name, entry, config) ? visible : hidden).push(tool)
  }
  return { visible, hidden }
}

interface OwnTools {
  readonly backend: string
  readonly entry: WorkloadToolsConfig | undefined
  readonly candidates: readonly Candidate[]
  readonly conflicts: readonly Conflict[]
}

/** By the list: when one backend of many changes, the others are not read again. */
const known = new WeakMap<readonly JsonObject[], OwnTools>()

function ownTools({ backend, tools }: BackendLists, entry: WorkloadToolsConfig | undefined): OwnTools {
  const before = known.get(tools)
  if (before !== undefined && before.backend === backend && before.entry === entry) return before
  const conflicts: Conflict[] = []
  const report = (conflict: Conflict) => void conflicts.push(conflict)
  const own = namedItems({ kind: 'tool', backend, items: tools, key: 'name' }, report).map((tool) => overridden(tool, entry))
  const found = { backend, entry, candidates: withoutRepeatedNames(own, report), conflicts }
  known.set(tools, found)
  return found
}

interface Listed {
  readonly kind: ItemKind
  readonly backend: string
  readonly items: readonly JsonObject[]
  readonly key: 'name' | 'uri' | 'uriTemplate'
}

/** The items with a usable key, sorted by it. A key that comes twice counts once, and so does what a lying server sends instead of items. */
export function namedItems({ kind, backend, items, key }: Listed, report: (conflict: Conflict) => void): readonly Candidate[] {
  const found = new Map<string, Candidate>()
  for (const item of items) {
    const original: unknown = isObject(item) ? item[key] : undefined
    if (typeof original !== 'string' || original === '' || original.length > MAX_KEY) {
      const shown = typeof original === 'string' ? original.slice(0, MAX_SHOWN) : ''
      report({ kind, outcome: 'invalid', backend, original: shown, name: shown })
    } else if (found.has(original)) report({ kind, outcome: 'duplicate', backend, original, name: original })
    else {
      const sound = soundItem(kind, item, original)
      if (sound === undefined) report({ kind, outcome: 'invalid', backend, original, name: original })
      else found.set(original, { backend, original, name: original, item: sound })
    }
  }
  return [...found.values()].toSorted((a, b) => byCodePoint(a.original, b.original))
}

const MAX_KEY = 4_096
const MAX_SHOWN = 64

function overridden(tool: Candidate, entry: WorkloadToolsConfig | undefined): Candidate {
  const overrides = entry?.overrides ?? {}
  const override = Object.hasOwn(overrides, tool.original) ? overrides[tool.original] : undefined
  // Tasks are not offered here, so neither is what a tool says about them.
  const { execution: _, ...item } = tool.item
  if (override === undefined) return { ...tool, item }
  const { name = tool.name, description, annotations } = override
  const own = isObject(item['annotations']) ? item['annotations'] : {}
  return {
    ...tool,
    name,
    item: {
      ...item,
      ...(description !== undefined && { description }),
      ...(annotations !== undefined && { annotations: { ...own, ...annotations } }),
    },
  }
}

/** An override can give two tools of one backend the same name: the first by its real name keeps it. */
function withoutRepeatedNames(tools: readonly Candidate[], report: (conflict: Conflict) => void): readonly Candidate[] {
  const holders = new Map<string, Candidate>()
  for (const tool of tools) {
    const holder = holders.get(tool.name)
    if (holder === undefined) holders.set(tool.name, tool)
    else report({ kind: 'tool', outcome: 'lost', backend: tool.backend, original: tool.original, name: tool.name, winner: holder.backend })
  }
  return [...holders.values()]
}

function isVisible(name: string, entry: WorkloadToolsConfig | undefined, config: AggregationConfig): boolean {
  if (config.excludeAllTools) return false
  if (entry === undefined) return config.defaultToolVisibility === 'allow'
  if (entry.excludeAll || entry.exclude.includes(name)) return false
  return entry.filter.length === 0 || entry.filter.includes(name)
}
