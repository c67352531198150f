import type { Problem } from './field.ts'
import { MIDDLEWARE, type MiddlewareRow } from './middleware-table.ts'
import type { MiddlewareConfig, RunConfig } from './run-config.ts'

const CHECKS = new Map(
  MIDDLEWARE.flatMap(({ entry }: MiddlewareRow) => (entry === undefined ? [] : entry.types.map((type) => [type, entry] as const))),
)

/**
 * The problems of the middleware lists. An entry that asks for something else than the typed fields do would never take effect, so it is
 * a problem that names the field to use.
 */
export function middlewareProblems(config: RunConfig): Problem[] {
  return [...listProblems('middleware_configs', config), ...listProblems('additional_middleware_configs', config)]
}

function listProblems(list: 'middleware_configs' | 'additional_middleware_configs', config: RunConfig): Problem[] {
  return config[list].flatMap((entry, index) => {
    const message = problemOf(entry, config)
    return message === undefined ? [] : [{ path: `${list}[${index}]`, message }]
  })
}

function problemOf({ type, parameters = {} }: MiddlewareConfig, config: RunConfig): string | undefined {
  const check = CHECKS.get(type)
  if (check === undefined) return `asks for an unknown middleware; known are ${[...CHECKS.keys()].toSorted().join(', ')}`
  if (check.isMet(parameters, config)) return undefined
  return `differs from the fields of the document; ${check.instead} instead of this ${type} entry`
}
