import { isObject, type JsonObject } from '@thv/mcp/json-rpc'
import { type ListPage, type ListText, PAGE_SIZE, pageAt, pageStart } from './list-text.ts'

/** An item as some clients know it. */
export type Project = (item: JsonObject) => JsonObject

export interface PageOptions {
  readonly project: Project | undefined
  /** Many clients have this list: its pages are kept as long as it is. */
  readonly isShared: boolean
}

/** By the list, the projection, and the place of the first item. When a list changes, every session asks for the same pages: each is written once. */
const kept = new WeakMap<ListText, Map<Project | undefined, Map<number, ListPage>>>()

/** The page after a cursor; undefined for a cursor that is none of ours. */
export function pageOf(list: ListText, cursor: unknown, { project, isShared }: PageOptions): ListPage | undefined {
  const start = pageStart(list, cursor)
  if (start === undefined) return undefined
  // Other pages begin where a client says, or where one of an older list ended: there would be too many.
  if (!isShared || start % PAGE_SIZE !== 0) return pageFor(list, start, project)
  const projections = kept.get(list) ?? new Map<Project | undefined, Map<number, ListPage>>()
  const pages = projections.get(project) ?? new Map<number, ListPage>()
  const known = pages.get(start)
  if (known !== undefined) return known
  const page = pageFor(list, start, project)
  kept.set(list, projections.set(project, pages.set(start, page)))
  return page
}

function pageFor(list: ListText, start: number, project: Project | undefined): ListPage {
  const page = pageAt(list, start)
  return project === undefined ? page : { ...page, text: projected(page.text, project) }
}

/** Only items that change are written again. */
function projected(text: string, project: Project): string {
  if (!text.includes('"outputSchema"')) return text
  const items: unknown = JSON.parse(`[${text}]`)
  if (!Array.isArray(items)) return text
  return items.map((item: unknown) => JSON.stringify(isObject(item) ? project(item) : item)).join(',')
}
