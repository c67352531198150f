import { sliceScenarios } from '../endpoint-slices/slice-scenarios.ts'
import { collectionScenarios } from '../garbage-collector/collection-scenarios.ts'
import { namespaceScenarios } from '../namespaces/namespace-scenarios.ts'
import type { ScenarioSet } from './scenario.ts'

/** `file` holds what the real controllers did. */
export const scenarioSets: readonly { readonly name: string; readonly set: ScenarioSet; readonly file: URL }[] = [
  {
    name: 'collection',
    set: collectionScenarios,
    file: new URL('../../../recordings/controllers/garbage-collector/collection.golden.json', import.meta.url),
  },
  {
    name: 'slices',
    set: sliceScenarios,
    file: new URL('../../../recordings/controllers/endpoint-slices/slices.golden.json', import.meta.url),
  },
  {
    name: 'namespaces',
    set: namespaceScenarios,
    file: new URL('../../../recordings/controllers/namespaces/namespaces.golden.json', import.meta.url),
  },
]
