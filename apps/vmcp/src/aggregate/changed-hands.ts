import type { Route, View } from './aggregate.ts'

/** A name that clients know and that leads to another backend than before: a call by the old list would reach a stranger. */
export interface ChangedHands {
  readonly kind: 'tool' | 'prompt' | 'resource'
  readonly name: string
  readonly from: string
  readonly to: string
}

export function changedHands(before: View, after: View): readonly ChangedHands[] {
  return [
    ...changed('tool', before.tools, after.tools),
    ...changed('prompt', before.prompts, after.prompts),
    ...changed('resource', before.resources, after.resources),
  ]
}

function changed(kind: ChangedHands['kind'], before: ReadonlyMap<string, Route>, after: ReadonlyMap<string, Route>): ChangedHands[] {
  const found: ChangedHands[] = []
  for (const [name, { backend: to, selector }] of after) {
    const from = before.get(name)
    if (from !== undefined && from.backend !== to && from.selector === undefined && selector === undefined)
      found.push({ kind, name, from: from.backend, to })
  }
  return found
}
