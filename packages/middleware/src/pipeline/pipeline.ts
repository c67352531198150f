import type { MutableHeaderMap } from '@thv/http/header-map'
import type { JsonObject } from '@thv/mcp/json-rpc'
import { LIST_MEMBERS } from '@thv/mcp/methods'
import type { Rejection } from '@thv/mcp/wire-errors'
import { editItems, type ListEditor } from './list-edit.ts'
import { type Awaitable, type Middleware, setHeader } from './middleware.ts'
import type { Hop, MessageContext, RequestContext } from './request-context.ts'

/**
 * All middleware of a program, compiled once. The steps are those of `Middleware`; each stays synchronous as long as all middleware
 * are, and allocates nothing per request.
 *
 * The gateway calls `open`, `message` and `end`. A backend calls `prepare` and `headers`, because only it knows the hop, and
 * `streaming`, because only it knows when a stream begins.
 */
export interface Pipeline {
  open(context: RequestContext): Awaitable<Rejection | undefined>
  message(context: MessageContext): Awaitable<Rejection | undefined>
  prepare(hop: Hop): Awaitable<Rejection | undefined>
  headers(hop: Hop, set: MutableHeaderMap): void
  /** True when at least one middleware has forgotten its credentials, so that another attempt is worth it. */
  credentialsRejected(hop: Hop): boolean
  streaming(context: RequestContext): void
  /** The backend has announced that its list of tools is another one now. */
  toolsChanged(): void
  /** Runs every `end` step; throws the first error afterwards, for the log. */
  end(context: RequestContext): void
  /** Some middleware has an `end` step, so the outcome of a call is worth finding out. */
  readonly observesEnd: boolean
  /** Responses up to this many bytes are kept in `context.answer`; 0: none are. */
  readonly answerBytes: number
  close(signal: AbortSignal): Promise<void>

  /** The results of this method are edited. */
  edits(method: string): boolean
  /** One item of a result of `method`; undefined hides it. */
  item(context: RequestContext, method: string, item: JsonObject): JsonObject | undefined
  /** The text of a whole response to `context.received`. Text that no middleware changes stays letter for letter. */
  responseText(context: RequestContext, text: string): string
  /** Responses of unknown origin have to be looked at (`strayResponseText`). */
  readonly editsStrays: boolean
  /** As `responseText`, for a response on a resumed stream: the request is unknown, so the form of the result decides. */
  strayResponseText(context: RequestContext, text: string): string
}

type Step<C> = (context: C) => Awaitable<Rejection | undefined>
type ItemStep = ListEditor['edit']

export function compilePipeline(middleware: readonly Middleware[]): Pipeline {
  const open = steps(middleware, (one) => one.open?.bind(one))
  const message = steps(middleware, (one) => one.message?.bind(one))
  const prepare = steps(middleware, (one) => one.prepare?.bind(one))
  const headers = steps(middleware, (one) => one.headers?.bind(one))
  const rejected = steps(middleware, (one) => one.credentialsRejected?.bind(one))
  const streaming = steps(middleware, (one) => one.streaming?.bind(one))
  const end = steps(middleware, (one) => one.end?.bind(one)).toReversed()
  const withheld = [...new Set(middleware.flatMap(({ withholds = [] }) => withholds))]
  const editors = editorsOf(middleware)

  return {
    open: (context) => runFrom(open, 0, context),
    message: (context) => runFrom(message, 0, context),
    prepare: (hop) => runFrom(prepare, 0, hop),
    headers(hop, set) {
      const { credentials } = hop
      if (credentials !== undefined) for (const name in credentials) setHeader(set, name, credentials[name])
      for (const step of headers) step(hop, set)
      for (const name of withheld) setHeader(set, name, undefined)
    },
    credentialsRejected(hop) {
      let forgotten = false
      for (const step of rejected) if (step(hop)) forgotten = true
      return forgotten
    },
    streaming(context) {
      if (context.outcome === 'pending') context.outcome = 'ok'
      context.isStream = true
      for (const step of streaming) step(context)
    },
    toolsChanged() {
      for (const one of middleware) one.toolsChanged?.()
    },
    end: (context) => runAll(end, context),
    observesEnd: end.length > 0,
    answerBytes: Math.max(0, ...middleware.map((one) => one.answerBytes ?? 0)),
    async close(signal) {
      await Promise.all(middleware.map((one) => one.close?.(signal)))
    },
    edits: (method) => editors.has(method),
    item(context, method, item) {
      const editor = editors.get(method)
      return editor === undefined ? item : editor.edit(context, item)
    },
    responseText(context, text) {
      const editor = editors.get(context.received?.method ?? '')
      return editor === undefined ? text : editItems(text, editor, context)
    },
    editsStrays: editors.size > 0,
    strayResponseText(context, text) {
      let edited = text
      for (const editor of editors.values()) edited = editItems(edited, editor, context)
      return edited
    },
  }
}

function steps<S>(middleware: readonly Middleware[], stepOf: (one: Middleware) => S | undefined): S[] {
  return middleware.map(stepOf).filter((step) => step !== undefined)
}

/** A closure is made only after a step has returned a promise. */
function runFrom<C>(all: readonly Step<C>[], start: number, context: C): Awaitable<Rejection | undefined> {
  for (let at = start; at < all.length; at++) {
    const rejection = all[at]?.(context)
    if (rejection instanceof Promise) return continueAfter(rejection, all, { at: at + 1, context })
    if (rejection !== undefined) return rejection
  }
  return undefined
}

async function continueAfter<C>(waiting: Promise<Rejection | undefined>, all: readonly Step<C>[], next: { at: number; context: C }) {
  return (await waiting) ?? (await runFrom(all, next.at, next.context))
}

function runAll(all: readonly ((context: RequestContext) => void)[], context: RequestContext): void {
  let failed = false
  let failure: unknown
  for (const step of all) {
    try {
      step(context)
    } catch (error) {
      if (!failed) failure = error
      failed = true
    }
  }
  if (failed) throw failure
}

function editorsOf(middleware: readonly Middleware[]): ReadonlyMap<string, ListEditor> {
  const editors = new Map<string, ListEditor>()
  for (const [method, member] of LIST_MEMBERS) {
    const editing = middleware.filter((one) => one.edits?.includes(method))
    const edits = steps(editing, (one) => itemStep(one, method)).toReversed()
    const isPerCaller = editing.some((one) => one.editsPerCaller === true)
    if (edits.length > 0) editors.set(method, { member, isPerCaller, edit: (context, item) => throughAll(edits, context, item) })
  }
  return editors
}

function itemStep(one: Middleware, method: string): ItemStep | undefined {
  const item = one.item?.bind(one)
  return item && ((context, edited) => item(context, edited, method))
}

function throughAll(edits: readonly ItemStep[], context: RequestContext, item: JsonObject): JsonObject | undefined {
  let edited: JsonObject | undefined = item
  for (const edit of edits) {
    if (edited === undefined) return undefined
    edited = edit(context, edited)
  }
  return edited
}
