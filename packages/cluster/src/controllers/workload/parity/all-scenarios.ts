import { deploymentScenarios } from './deployment-scenarios.ts'
import { replicaSetScenarios } from './replica-set-scenarios.ts'
import { statefulSetScenarios } from './stateful-set-scenarios.ts'
import type { Scenario } from './testing/scenario.ts'

/** By the name of the file that holds what the real controllers make of them. */
export const scenarioSets: Readonly<Record<string, readonly Scenario[]>> = {
  'replica-set': replicaSetScenarios,
  deployment: deploymentScenarios,
  'stateful-set': statefulSetScenarios,
}
