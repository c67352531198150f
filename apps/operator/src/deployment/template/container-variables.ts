import { jsonEqual } from '@thv/kernel/json'
import type { ConditionUpdate } from '@thv/kube'
import { WorkloadCondition, WorkloadReason } from '@thv/resources/shared/workload-conditions'
import type { EnvVar } from '../contribution.ts'

export interface MergedEnvironment {
  /** One entry per name, where it first stood. */
  readonly env: readonly EnvVar[]
  /** Names whose other value is not used. */
  readonly shadowed: readonly string[]
}

/** One list out of several, the strongest first. Inside a list the last of a name counts, as in Kubernetes. */
export function mergeEnvironment(...lists: readonly (readonly EnvVar[])[]): MergedEnvironment {
  const merged = new Map<string, EnvVar>()
  const shadowed = new Set<string>()
  for (const list of lists) {
    const own = new Map<string, EnvVar>()
    for (const entry of list) {
      const used = merged.get(entry.name) ?? own.get(entry.name)
      if (used !== undefined && !jsonEqual(used, entry)) shadowed.add(entry.name)
      own.set(entry.name, entry)
    }
    for (const [name, entry] of own) if (!merged.has(name)) merged.set(name, entry)
  }
  return { env: [...merged.values()], shadowed: [...shadowed].sort() }
}

/** Empty when nothing is shadowed: the condition is then removed. */
export function shadowedCondition(names: readonly string[]): ConditionUpdate[] {
  if (names.length === 0) return []
  const list = [...new Set(names)].sort().join(', ')
  return [
    {
      type: WorkloadCondition.EnvironmentShadowed,
      status: 'True',
      reason: WorkloadReason.VariableSetTwice,
      message: `Set more than once, and only one value of each is used: ${list}. Variables that the operator sets win over secrets, secrets over env, env over podTemplateSpec; remove the others.`,
    },
  ]
}
