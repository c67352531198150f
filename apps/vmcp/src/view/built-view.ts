import { type AggregationConfig, SEARCH_TOOLS, type ToolSearchConfig, type VmcpConfig } from '@thv/vmcpconfig/vmcp-config'
import { aggregate, sortedByKey, type View } from '../aggregate/aggregate.ts'
import { type BackendLists, byCodePoint } from '../aggregate/backend-lists.ts'
import { type CompositeOffers, compileWorkflows, type NamedWorkflow, offerComposites } from '../compose/composite-offers.ts'
import { LIST_KINDS, type ListKind } from '../members/load-lists.ts'
import { searchTools } from '../search/search-tools.ts'
import { isSameList, type Listed, type ListText, listText } from './list-text.ts'

/** The joined lists of backends, with their pages as text. */
export interface BuiltView {
  readonly view: View
  readonly composites: CompositeOffers
  readonly texts: Readonly<Record<ListKind, ListText>>
}

export interface ViewSettings {
  readonly config: AggregationConfig
  /** Composite tools under their advertised names. */
  readonly workflows: readonly NamedWorkflow[]
  /** Clients search for tools; only some are listed. */
  readonly search?: SearchSettings | undefined
}

export interface SearchSettings extends ToolSearchConfig {
  /** The description of the search names the backends. Where policies hide tools, callers may not know all of them. */
  readonly namesBackends: boolean
}

/** Of a file that was checked already. */
export function viewSettings({ aggregation, compositeTools, optimizer, incomingAuth }: VmcpConfig): ViewSettings {
  const search = optimizer && { ...optimizer, namesBackends: incomingAuth.authz?.type !== 'cedar' }
  return { config: aggregation, workflows: compileWorkflows(compositeTools), search }
}

/** Pure. */
export function buildView(lists: readonly BackendLists[], { config, workflows, search }: ViewSettings): BuiltView {
  const sorted = lists.toSorted((a, b) => (a.backend < b.backend ? -1 : 1))
  const ownTools = search === undefined ? [] : Object.values(SEARCH_TOOLS)
  const view = aggregate(sorted, { config, reservedNames: new Set([...workflows.map(({ name }) => name), ...ownTools]) })
  const composites = offerComposites(view, workflows)
  return { view, composites, texts: textsOf(view, composites, search) }
}

export function changedKinds(before: BuiltView, after: BuiltView): ReadonlySet<ListKind> {
  return new Set(LIST_KINDS.filter((kind) => !isSameList(after.texts[kind], before.texts[kind])))
}

/** Characters of all its items. */
export function sizeOf({ texts }: BuiltView): number {
  let size = 0
  for (const kind of LIST_KINDS) for (const item of texts[kind].items) size += item.length
  return size
}

function textsOf(view: View, { offered }: CompositeOffers, search: SearchSettings | undefined): Readonly<Record<ListKind, ListText>> {
  const tools = offered.size === 0 ? view.tools : sortedByKey(new Map<string, Listed>([...view.tools, ...offered]))
  return {
    tools: listText(search === undefined ? tools : listedTools(tools, view, search)),
    prompts: listText(view.prompts),
    resources: listText(view.resources),
    resourceTemplates: listText(view.resourceTemplates),
  }
}

/** With tool search: its own tools, and those that stay in the list. */
function listedTools(tools: ReadonlyMap<string, Listed>, view: View, search: SearchSettings): ReadonlyMap<string, Listed> {
  const routes = search.namesBackends ? [...view.tools.values()] : []
  const backends = new Set(routes.flatMap(({ backend, selector }) => [...(selector?.backends.keys() ?? [backend])]))
  const own = searchTools(search, [...backends].toSorted(byCodePoint)).map((item) => [String(item['name']), { item }] as const)
  const kept = search.alwaysListed.flatMap((name) => {
    const tool = tools.get(name)
    return tool === undefined ? [] : [[name, tool] as const]
  })
  return sortedByKey(new Map<string, Listed>([...own, ...kept]))
}
