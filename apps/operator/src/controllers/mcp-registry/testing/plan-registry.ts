import { readFileSync } from 'node:fs'
import type { MCPRegistry } from '@thv/resources/kinds/mcp-registry/schema'
import { fixturesOf, manifestsIn } from '@thv/resources/testing/fixtures'
import { planFacts } from '../../../testing/fixture-namespace.ts'
import { aggregateEntry, type EntryAggregate } from '../aggregate/aggregate-entry.ts'
import { type PlanInput, planMcpRegistry, type RegistryPlan } from '../plan/plan.ts'

type Spec = MCPRegistry['spec']

/** A plan for a spec, in a namespace that has everything it names. */
export function planOf(spec: Spec, change: Partial<PlanInput> & { metadata?: Partial<MCPRegistry['metadata']> } = {}): RegistryPlan {
  const { metadata, ...rest } = change
  const registry = { metadata: { name: 'demo', namespace: 'team', uid: 'uid-demo', generation: 3, ...metadata }, spec } as MCPRegistry
  return planMcpRegistry({
    registry,
    settings: planFacts().settings,
    aggregates: [],
    missing: [],
    invalidReferences: [],
    live: undefined,
    secretsHash: undefined,
    exportReading: { result: { entries: [], warnings: [] }, problems: [] },
    ...rest,
  })
}

export const FIXTURES = fixturesOf('mcpregistries').map(({ manifest }) => [manifest.metadata.name, manifest.spec as Spec] as const)

const SEEDS = new URL('../../../../../../test/fixtures/seeds/', import.meta.url)

/** The MCPRegistry of a manifest file of the design documents. */
export function seedRegistry(file: string): MCPRegistry {
  const found = manifestsIn(readFileSync(new URL(file, SEEDS), 'utf8')).find(({ kind }) => kind === 'MCPRegistry')
  return found as unknown as MCPRegistry
}

export function configText(plan: RegistryPlan): string {
  const maps = plan.children.flatMap((child) => (child.kind === 'ConfigMap' ? [child.object] : []))
  return maps[0]?.data?.['config.yaml'] ?? ''
}

export function deploymentOf(plan: RegistryPlan) {
  return plan.children.flatMap((child) => (child.kind === 'Deployment' ? [child.object] : []))[0]
}

export const EMPTY_AGGREGATE: EntryAggregate = aggregateEntry({ name: 'by-label', format: 'toolhive' }, [])
