import { HINTS, type Hints, type Operation } from '@thv/authz/access/operation'
import { isObject } from '@thv/kernel/json'
import type { JsonObject } from '@thv/mcp/json-rpc'
import { METHODS } from '@thv/mcp/methods'
import type { AuthorizeDeps } from './authorize.ts'

type ItemDeps = Pick<AuthorizeDeps, 'visibleName' | 'hintOverrides' | 'originOf'>

/** The operation that an item of a list stands for, with arguments unknown. Undefined: it has no name, so nothing can permit it. */
export function listedOperation(item: JsonObject, method: string, deps: ItemDeps): Operation | undefined {
  const { name, uri, uriTemplate } = item
  switch (method) {
    case METHODS.toolsList:
      if (typeof name !== 'string') return undefined
      return {
        action: 'call_tool',
        name,
        visibleName: deps.visibleName(name),
        args: 'unknown',
        hints: hintsOf(item, deps.hintOverrides(name)),
        origin: deps.originOf?.(name),
      }
    case METHODS.promptsList:
      return typeof name === 'string' ? { action: 'get_prompt', name, args: 'unknown' } : undefined
    case METHODS.resourcesList:
      return typeof uri === 'string' ? { action: 'read_resource', uri } : undefined
    case METHODS.resourceTemplatesList:
      return typeof uriTemplate === 'string' ? { action: 'read_resource', uri: uriTemplate } : undefined
    default:
      return undefined
  }
}

/** Of a tool in a list. Anything that is no boolean is no hint. */
export function hintsOf({ annotations }: JsonObject, overrides: Hints | undefined): Hints | undefined {
  if (!isObject(annotations) && overrides === undefined) return undefined
  const hints: { -readonly [H in keyof Hints]: boolean } = {}
  for (const hint of HINTS) {
    const value = overrides?.[hint] ?? (isObject(annotations) ? annotations[hint] : undefined)
    if (typeof value === 'boolean') hints[hint] = value
  }
  return hints
}
