import type { DependentStep } from '@thv/resources/shared/composite/composite-dependencies'

/** For each step all steps that are done before it starts. In a cycle every member is an ancestor of every other. */
export function ancestorsOf(steps: readonly DependentStep[]): ReadonlyMap<string, ReadonlySet<string>> {
  const byId = new Map(steps.map((step) => [step.id, step]))
  return new Map(
    steps.map((step) => {
      const found = new Set<string>()
      const open = [...step.dependsOn]
      for (let id = open.pop(); id !== undefined; id = open.pop()) {
        if (found.has(id) || !byId.has(id)) continue
        found.add(id)
        open.push(...(byId.get(id)?.dependsOn ?? []))
      }
      return [step.id, found]
    }),
  )
}
