import type { MutableHeaderMap } from '@thv/http/header-map'
import { isObject, type JsonObject } from '@thv/mcp/json-rpc'
import { LIST_MEMBERS } from '@thv/mcp/methods'
import type { Rejection } from '@thv/mcp/wire-errors'
import { editItems } from './list-edit.ts'
import type { Caller, RequestContext } from './request-context.ts'

/** One step that looks at, changes or refuses what passes. Links have no state per request: that is in the context. */
export interface Middleware {
  readonly name: string
  /** On the way in. May replace `context.outgoing`. What it returns is sent to the client instead of asking the backend. */
  request?(context: RequestContext): Refusal | undefined | Promise<Refusal | undefined>
  /** List methods whose items this link edits; the results of all others stream through untouched. */
  readonly edits?: readonly string[]
  /** One item of such a list: the same object stays, another one takes its place, undefined hides it. */
  item?(caller: Caller, item: JsonObject): JsonObject | undefined
  /** Headers for a request to an HTTP backend, in lower case; they go over what the client sent. */
  headers?(caller: Caller, headers: MutableHeaderMap): void
}

/** `edge`: an HTTP error. `inBand`: a JSON-RPC error with status 200, as the handler of the method would have sent it. */
export type Refusal = { readonly at: 'edge' | 'inBand'; readonly rejection: Rejection }

/** All links of a runner, compiled once: nothing is allocated per link and request. */
export interface Pipeline {
  request(context: RequestContext): Refusal | undefined | Promise<Refusal | undefined>
  editsResultOf(method: string): boolean
  /** For a result that is parsed and will be serialised anyway. The same object when there is nothing to change. */
  result(context: RequestContext, result: JsonObject): JsonObject
  /** The text of a whole response to this request: whatever no link changes stays letter for letter. What has no result stays. */
  responseText(context: RequestContext, text: string): string
  /** Whether responses of unknown origin must be looked at (`strayResponseText`). */
  readonly editsStrays: boolean
  /** As `responseText`, for a response on a resumed stream, where nobody knows what it answers: the form of the result tells. */
  strayResponseText(caller: Caller, text: string): string
  headers(caller: Caller, headers: MutableHeaderMap): void
}

export function compilePipeline(links: readonly Middleware[]): Pipeline {
  const requestLinks = links.filter((link) => link.request !== undefined)
  const headerLinks = links.filter((link) => link.headers !== undefined)
  const editors = editorsOf(links)

  return {
    request: (context) => runFrom(requestLinks, 0, context),
    editsResultOf: (method) => editors.has(method),
    result(context, result) {
      const editor = editors.get(context.received.method ?? '')
      return editor === undefined ? result : editedResult(editor, context, result)
    },
    responseText(context, text) {
      const editor = editors.get(context.received.method ?? '')
      return editor === undefined ? text : editItems(text, editor.member, (item) => editor.edit(context, item))
    },
    editsStrays: editors.size > 0,
    strayResponseText(caller, text) {
      let edited = text
      for (const { member, edit } of editors.values()) edited = editItems(edited, member, (item) => edit(caller, item))
      return edited
    },
    headers(caller, headers) {
      for (const link of headerLinks) link.headers?.(caller, headers)
    },
  }
}

interface Editor {
  /** The member of the result that holds the items. */
  readonly member: string
  edit(caller: Caller, item: JsonObject): JsonObject | undefined
}

/** One pass over each list, however many links edit it. */
function editorsOf(links: readonly Middleware[]): ReadonlyMap<string, Editor> {
  const editors = new Map<string, Editor>()
  for (const [method, member] of LIST_MEMBERS) {
    // Innermost first: each link sees what the ones behind it made of an item.
    const edits = links.filter((link) => link.item !== undefined && link.edits?.includes(method)).toReversed()
    if (edits.length > 0) editors.set(method, { member, edit: (caller, item) => throughAll(edits, caller, item) })
  }
  return editors
}

function throughAll(links: readonly Middleware[], caller: Caller, item: JsonObject): JsonObject | undefined {
  let edited: JsonObject | undefined = item
  for (const link of links) {
    if (edited === undefined) return undefined
    edited = link.item?.(caller, edited)
  }
  return edited
}

function editedResult({ member, edit }: Editor, caller: Caller, result: JsonObject): JsonObject {
  const items = result[member]
  if (!Array.isArray(items)) return result
  const edited = items.map((item) => (isObject(item) ? edit(caller, item) : undefined)).filter((item) => item !== undefined)
  return edited.length === items.length && edited.every((item, i) => item === items[i]) ? result : { ...result, [member]: edited }
}

/** Stays synchronous as long as the links do. */
function runFrom(links: readonly Middleware[], start: number, context: RequestContext): Refusal | undefined | Promise<Refusal | undefined> {
  for (let at = start; at < links.length; at++) {
    const refusal = links[at]?.request?.(context)
    if (refusal instanceof Promise) return refusal.then((settled) => settled ?? runFrom(links, at + 1, context))
    if (refusal) return refusal
  }
  return undefined
}
