import type { Json } from '@thv/kernel/json'
import type { CanonicalOutputProperty } from '@thv/resources/shared/composite/composite-output'
import { coerced } from '../engine/coerce.ts'
import type { OutputMember } from '../engine/workflow.ts'
import type { Problems } from './problems.ts'
import type { TemplateSites } from './template-sites.ts'

export interface OutputSite {
  readonly problems: Problems
  readonly sites: TemplateSites
  readonly field: string
}

/** The output may use every step: it is made when all are done. */
export function compileOutput(
  site: OutputSite,
  properties: Readonly<Record<string, CanonicalOutputProperty>>,
): ReadonlyMap<string, OutputMember> {
  return new Map(
    Object.entries(properties).map(([name, definition]) => [
      name,
      memberOf({ ...site, field: `${site.field}.properties.${name}` }, definition),
    ]),
  )
}

function memberOf(site: OutputSite, definition: CanonicalOutputProperty): OutputMember {
  const { problems, sites, field } = site
  const hasDefault = definition.default !== undefined
  if (hasDefault && 'problem' in coerced(definition.default as Json, { type: definition.type }, 'exact')) {
    problems.add('value', { field: `${field}.default` }, `must be of type ${definition.type}`)
  }
  return {
    field,
    definition,
    template:
      definition.value === undefined
        ? undefined
        : sites.compile({ field: `${field}.value`, ancestors: EVERY_STEP, hasDefault }, definition.value),
    members: definition.properties && compileOutput(site, definition.properties),
  }
}

const EVERY_STEP: ReadonlySet<string> = Object.assign(new Set<string>(), { has: () => true })
