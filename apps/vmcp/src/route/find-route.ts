import { isObject, type JsonObject } from '@thv/mcp/json-rpc'
import { METHODS } from '@thv/mcp/methods'
import { isRejection, type Rejection, reject } from '@thv/mcp/wire-errors'
import type { Route, View } from '../aggregate/aggregate.ts'
import { type MatchBudget, matchesTemplate, parseUriTemplate } from '../aggregate/uri-template.ts'

/** Where a request goes, and with which params. */
export interface Destination {
  readonly backend: string
  readonly params: JsonObject
}

/** Undefined: no backend is meant, and the answer is empty (only `completion/complete`). */
export function findRoute(view: View, method: string, params: JsonObject): Destination | Rejection | undefined {
  switch (method) {
    case METHODS.toolsCall:
      return toolRoute(view, params)
    case METHODS.promptsGet:
      return promptRoute(view, params)
    case METHODS.complete:
      return completionRoute(view, params)
    default:
      return resourceRoute(view, params)
  }
}

const LED: ReadonlySet<string> = new Set([METHODS.promptsGet, METHODS.resourcesRead, METHODS.complete])

/** The backend that a request leads to, if it leads to one. */
export function backendOf(view: View, method: string, params: JsonObject): string | undefined {
  if (method === METHODS.toolsCall) {
    const route = typeof params['name'] === 'string' ? view.tools.get(params['name']) : undefined
    if (route?.selector === undefined) return route?.backend
    const chosen = isObject(params['arguments']) ? params['arguments'][route.selector.argument] : undefined
    return typeof chosen === 'string' && route.selector.backends.has(chosen) ? chosen : undefined
  }
  const found = LED.has(method) ? findRoute(view, method, params) : undefined
  return found === undefined || isRejection(found) ? undefined : found.backend
}

function toolRoute(view: View, params: JsonObject): Destination | Rejection {
  const { name } = params
  const route = typeof name === 'string' ? view.tools.get(name) : undefined
  return route === undefined ? unknown('tool', name) : toolDestination(route, params)
}

/** The call of a tool as its backend knows it. */
export function toolDestination(route: Route, params: JsonObject): Destination | Rejection {
  const { arguments: args } = params
  if (args !== undefined && !isObject(args)) return invalid('arguments must be an object')
  const { selector } = route
  if (selector === undefined) return { backend: route.backend, params: named(params, route.original) }
  const { [selector.argument]: chosen, ...rest } = args ?? {}
  const original = typeof chosen === 'string' ? selector.backends.get(chosen) : undefined
  if (typeof chosen !== 'string' || original === undefined)
    return invalid(`argument ${selector.argument} must be one of ${[...selector.backends.keys()].join(', ')}`)
  return { backend: chosen, params: { ...params, name: original, arguments: rest } }
}

function named(params: JsonObject, name: string): JsonObject {
  return params['name'] === name ? params : { ...params, name }
}

function promptRoute(view: View, params: JsonObject): Destination | Rejection {
  const { name } = params
  const route = typeof name === 'string' ? view.prompts.get(name) : undefined
  return route === undefined ? unknown('prompt', name) : { backend: route.backend, params: named(params, route.original) }
}

function resourceRoute(view: View, params: JsonObject): Destination | Rejection {
  const { uri } = params
  if (typeof uri !== 'string') return invalid('uri must be a string')
  const route = routeOfUri(view, uri)
  return route === undefined ? reject('invalid_params', { detail: 'unknown resource', data: { uri } }) : { backend: route.backend, params }
}

/** Characters that the templates of one backend may cost a lookup: no backend slows the others down, or hides their templates. */
const MATCH_BUDGET = 1_000_000

/** Exact URIs first, then templates in their order. */
function routeOfUri(view: View, uri: string): Route | undefined {
  const exact = view.resources.get(uri) ?? view.resourceTemplates.get(uri)
  if (exact !== undefined) return exact
  const budgets = new Map<string, MatchBudget>()
  for (const route of view.resourceTemplates.values()) {
    const budget = budgets.get(route.backend) ?? { left: MATCH_BUDGET }
    budgets.set(route.backend, budget)
    if (matchesTemplate(templateOf(route), uri, budget)) return route
  }
  return undefined
}

const templates = new WeakMap<Route, ReturnType<typeof parseUriTemplate>>()

function templateOf(route: Route): ReturnType<typeof parseUriTemplate> {
  let template = templates.get(route)
  if (template === undefined) {
    template = parseUriTemplate(route.original)
    templates.set(route, template)
  }
  return template
}

function completionRoute(view: View, params: JsonObject): Destination | Rejection | undefined {
  const { ref, argument } = params
  if (!isObject(ref) || !isObject(argument) || typeof argument['name'] !== 'string') return invalid('ref and argument.name are required')
  if (ref['type'] === 'ref/prompt' && typeof ref['name'] === 'string') {
    const route = view.prompts.get(ref['name'])
    return route && { backend: route.backend, params: { ...params, ref: { ...ref, name: route.original } } }
  }
  const route = typeof ref['uri'] === 'string' ? routeOfUri(view, ref['uri']) : undefined
  return route && { backend: route.backend, params }
}

function unknown(kind: string, name: unknown): Rejection {
  return typeof name === 'string' ? invalid(`unknown ${kind}`) : invalid('name must be a string')
}

function invalid(detail: string): Rejection {
  return reject('invalid_params', { detail })
}
