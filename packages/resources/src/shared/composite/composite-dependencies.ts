import type { ProblemList } from '../../schema/normalize.ts'

export interface DependentStep {
  id: string
  dependsOn: readonly string[]
}

/** Reports steps that wait for a step that does not exist, or for themselves. */
export function reportDependencies(problems: ProblemList, field: string, steps: readonly DependentStep[]): void {
  const byId = new Map(steps.map((step) => [step.id, step]))
  for (const [index, step] of steps.entries()) {
    for (const id of step.dependsOn) {
      if (byId.has(id)) continue
      problems.add(`${field}[${index}].dependsOn`, 'missing', `${field}[${index}].dependsOn names ${id}, but there is no such step`)
    }
  }
  const cycle = findCycle(byId)
  if (cycle) {
    const index = steps.findIndex((step) => step.id === cycle[0])
    const path = [...cycle, cycle[0]].join(' → ')
    problems.add(
      `${field}[${index}].dependsOn`,
      'forbidden',
      `the steps wait for each other (${path}): remove one of these dependsOn entries`,
    )
  }
}

/** The ids of the first cycle, each depending on the next, the last on the first. */
export function findCycle(steps: ReadonlyMap<string, DependentStep>): string[] | undefined {
  const done = new Set<string>()
  for (const id of steps.keys()) {
    const cycle = visit(id, [])
    if (cycle) return cycle
  }
  return undefined

  function visit(id: string, path: string[]): string[] | undefined {
    const seenAt = path.indexOf(id)
    if (seenAt >= 0) return path.slice(seenAt)
    if (done.has(id)) return undefined
    for (const next of steps.get(id)?.dependsOn ?? []) {
      const cycle = visit(next, [...path, id])
      if (cycle) return cycle
    }
    done.add(id)
    return undefined
  }
}
