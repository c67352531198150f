import { readDocument } from '@thv/catalog/merge/read-document'
import type { ConfigMap } from '@thv/kube'
import { normaliseMcpRegistry } from '@thv/resources/kinds/mcp-registry/normalise'
import type { MCPRegistry } from '@thv/resources/kinds/mcp-registry/schema'
import { planFacts } from '../../../testing/fixture-namespace.ts'
import { aggregateEntry } from '../aggregate/aggregate-entry.ts'
import { isSelected } from '../aggregate/selected-maps.ts'
import { enforcementCondition } from '../report/enforced-images.ts'
import { storedData } from '../sync/fetch-documents.ts'
import { decideSync } from '../sync/sync-decision.ts'
import { planOf } from './plan-registry.ts'

/** ConfigMaps with labels and data of many kinds, so that every part of a selector and of a filter tells some of them apart. */
const TEXT = JSON.stringify({
  servers: Object.fromEntries(
    ['slack-mcp', 'slack-old', 'github-mcp', 'github-deprecated', 'other'].flatMap((name) =>
      [['approved'], ['approved', 'beta'], ['approved', 'experimental'], [], ['approvedx'], ['betax'], ['experimentalx']].map(
        (tags, index) => [`${name}${index}`, { image: 'example.com/a:1', tags }],
      ),
    ),
  ),
})
const MAPS = ['true', 'truex', 'false'].flatMap((registry) =>
  ['platform', 'platformx', 'data', 'datax', ''].flatMap((team) =>
    ['team-a', 'b'].flatMap((name) =>
      [{}, { deprecated: 'yes' }].map(
        (more, index): ConfigMap => ({
          apiVersion: 'v1',
          kind: 'ConfigMap',
          metadata: {
            name: `${name}-${registry}-${team || 'none'}-${index}`,
            labels: { 'toolhive.stacklok.dev/registry': registry, ...(team && { team }), ...more },
          },
        }),
      ),
    ),
  ),
)

/** All that the operator makes of a spec, in a namespace with everything, and what its syncs would do. */
export function registryOutcomes(spec: MCPRegistry['spec']) {
  const { spec: canonical } = normaliseMcpRegistry({ spec })
  const entries = 'registries' in canonical ? canonical.registries : []
  const aggregates = entries.flatMap((entry) => {
    const { configMapSelector: selector } = entry
    if (selector === undefined) return []
    const selected = MAPS.filter((map) => isSelected(map, selector)).map(({ metadata: { name } }) => ({
      name,
      annotations: {},
      reading: readDocument(TEXT, entry.format),
    }))
    return [{ ...aggregateEntry(entry, selected), key: selector.key }]
  })
  const settings = {
    ...planFacts().settings,
    remotes: { ...planFacts().settings.remotes, denyPrivate: false },
    registryExport: { namespaces: 'all', clusterRole: 'reader' } as const,
  }
  const plan = planOf(spec, { aggregates, settings })
  const { data, children, unwanted, conditions, blockers } = plan
  const missing = ['core-mcp-servers', 'core-mcp-serversx', 'corporate-ca', 'corporate-cax'].map((name) => `ConfigMap ${name}`)
  return [
    { works: true, made: planOf(spec, { missing }).conditions },
    {
      works: blockers.length === 0,
      made: {
        data,
        children,
        unwanted,
        conditions,
        aggregates,
        enforced: enforcementCondition(canonical, undefined),
        sync: 'source' in canonical ? syncOf(canonical) : undefined,
      },
    },
  ]
}

/** The fetch that the source shape asks for, what its filter keeps, and when it is repeated. */
function syncOf(spec: Extract<ReturnType<typeof normaliseMcpRegistry>['spec'], { source: unknown }>) {
  const now = Date.parse('2026-01-01T00:00:00Z')
  const known = { phase: 'Complete', lastSyncTime: new Date(now).toISOString() } as const
  const { interval } = spec.syncPolicy ?? {}
  const { configMap, git, api } = spec.source
  return {
    fetch: { configMap, git, api },
    stored: storedData(readDocument(TEXT, spec.source.format), spec.filter),
    next: decideSync({ known, interval, trigger: undefined, doneTrigger: undefined, changed: false, damaged: false, now }),
  }
}
