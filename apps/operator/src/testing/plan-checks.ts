import { readRunConfig } from '@thv/runconfig/read-run-config'
import { RUN_CONFIG_KEY } from '@thv/runconfig/run-config-mount'
import type { WorkloadPlan } from '../workload/workload-plan.ts'

/** The plan as golden files show it: the RunConfig as an object and not as a text in a text. */
export function readablePlan(plan: WorkloadPlan): unknown {
  return {
    ...plan,
    children: plan.children.map((child) =>
      child.kind === 'ConfigMap' ? { ...child, object: { ...child.object, data: { [RUN_CONFIG_KEY]: runConfigOf(plan) } } } : child,
    ),
  }
}

/** What people are told: everything but the objects. */
export function toldBy({ children: _, alias: __, ...told }: WorkloadPlan): unknown {
  return told
}

export function runConfigOf({ children }: WorkloadPlan): Record<string, unknown> | undefined {
  const text = children.find((child) => child.kind === 'ConfigMap')?.object.data?.[RUN_CONFIG_KEY]
  return text === undefined ? undefined : (JSON.parse(text) as Record<string, unknown>)
}

/** What is wrong with the RunConfig of the plan, warnings included; nothing when there is none. */
export function runConfigProblems(plan: WorkloadPlan): unknown[] {
  const document = runConfigOf(plan)
  if (document === undefined) return []
  const read = readRunConfig(document)
  return read.ok ? [...read.warnings] : [...read.problems]
}

/** Types and reasons of all conditions that the plan sets. */
export function conditionWords({ conditions, blockers }: WorkloadPlan): { types: string[]; reasons: string[] } {
  return {
    types: [...conditions.map(({ type }) => type), ...blockers.map(({ condition }) => condition)],
    reasons: [...conditions, ...blockers].map(({ reason }) => reason),
  }
}
