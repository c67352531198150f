import type { AggregationConfig } from '@thv/vmcpconfig/vmcp-config'
import { aggregate, sortedByKey, type View } from '../aggregate/aggregate.ts'
import type { BackendLists } from '../aggregate/backend-lists.ts'
import { type CompositeOffers, type NamedWorkflow, offerComposites } from '../compose/composite-offers.ts'
import { LIST_KINDS, type ListKind } from '../members/load-lists.ts'
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
}

/** Pure. */
export function buildView(lists: readonly BackendLists[], { config, workflows }: ViewSettings): BuiltView {
  const sorted = lists.toSorted((a, b) => (a.backend < b.backend ? -1 : 1))
  const view = aggregate(sorted, { config, reservedNames: new Set(workflows.map(({ name }) => name)) })
  const composites = offerComposites(view, workflows)
  return { view, composites, texts: textsOf(view, composites) }
}

export function changedKinds(before: BuiltView, after: BuiltView): ReadonlySet<ListKind> {
  return new Set(LIST_KINDS.filter((kind) => !isSameList(after.texts[kind], before.texts[kind])))
}

function textsOf(view: View, { offered }: CompositeOffers): Readonly<Record<ListKind, ListText>> {
  return {
    tools: listText(offered.size === 0 ? view.tools : sortedByKey(new Map<string, Listed>([...view.tools, ...offered]))),
    prompts: listText(view.prompts),
    resources: listText(view.resources),
    resourceTemplates: listText(view.resourceTemplates),
  }
}
