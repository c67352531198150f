import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type CanonicalMCPRegistrySpec, normaliseMcpRegistry } from './normalise.ts'
import type { MCPRegistry } from './schema.ts'

type Spec = MCPRegistry['spec']
const git = { repository: 'https://git.example.com/r.git', branch: 'main' }

describe('normaliseMcpRegistry', () => {
  it.each<[string, Spec]>([
    ['type: configmap with configmap', { source: { type: 'configmap', configmap: { name: 'a' } } }],
    ['type: configMap with configMap', { source: { type: 'configMap', configMap: { name: 'a' } } }],
    ['no type', { source: { configMap: { name: 'a', key: 'registry.json' } } }],
    ['both spellings that agree', { source: { configMap: { name: 'a' }, configmap: { name: 'a' } } }],
  ])('gives one ConfigMap source for %s', (_title, spec) => {
    const { spec: canonical, problems } = normaliseMcpRegistry({ spec })
    expect(canonical).toMatchObject({ source: { type: 'configMap', format: 'toolhive', configMap: { name: 'a', key: 'registry.json' } } })
    expect(problems).toEqual([])
  })

  it('reports two spellings that differ', () => {
    const { problems } = normaliseMcpRegistry({ spec: { source: { configMap: { name: 'a' }, configmap: { name: 'b' } } } })
    expect(problems).toEqual([expect.objectContaining({ field: 'spec.source.configMap', code: 'conflicting_spellings' })])
  })

  it('keeps the three shapes apart', () => {
    expect(Object.keys(normaliseMcpRegistry({ spec: { source: { git } } }).spec)).toContain('source')
    expect(normaliseMcpRegistry({ spec: { registries: [{ name: 'a', git }] } }).spec).not.toHaveProperty('source')
    expect(normaliseMcpRegistry({ spec: { configYAML: 'a: b' } }).spec).toMatchObject({ configYAML: 'a: b' })
  })

  it('gives the export the rule for foreign gateways that its mode needs', () => {
    const of = (policy: NonNullable<Spec['export']>) => normaliseMcpRegistry({ spec: { source: { git }, export: policy } }).spec.export
    expect(of({})).toEqual({ mode: 'server', namespaces: [], crossNamespaceGateway: 'accepted' })
    expect(of({ mode: 'operator' })).toMatchObject({ crossNamespaceGateway: 'referenceGrant' })
    expect(of({ mode: 'operator', crossNamespaceGateway: 'accepted' })).toMatchObject({ crossNamespaceGateway: 'accepted' })
  })

  it('exports nothing that was not asked for', () => {
    expect(normaliseMcpRegistry({ spec: { source: { git } } }).spec).not.toHaveProperty('export')
  })

  it('changes nothing the second time, whatever came in', () => {
    fc.assert(
      fc.property(anySpec, (spec) => {
        const once = normaliseMcpRegistry({ spec })
        const twice = normaliseMcpRegistry({ spec: once.spec as Spec })
        expect(twice.spec).toEqual(once.spec)
      }),
    )
  })

  it('gives the same object for every accepted spelling', () => {
    fc.assert(
      fc.property(anySpec, fc.infiniteStream(fc.boolean()), (spec, coins) => {
        const canonical = normaliseMcpRegistry({ spec }).spec
        const again = normaliseMcpRegistry({ spec: respelled(canonical, coins) })
        expect(again.spec).toEqual(canonical)
        expect(again.problems).toEqual([])
      }),
    )
  })
})

/** Writes a canonical spec with randomly chosen accepted spellings. */
function respelled(canonical: CanonicalMCPRegistrySpec, coins: fc.Stream<boolean>): Spec {
  const coin = () => coins.next().value as boolean
  const spec = structuredClone(canonical) as Spec
  const { source } = spec
  if (source?.configMap && coin()) {
    source.configmap = source.configMap
    delete source.configMap
    source.type = 'configmap'
  }
  if (source && coin()) delete source.type
  if (spec.enforceServers === false && coin()) delete spec.enforceServers
  if (spec.api?.enabled && coin()) delete spec.api
  return spec
}

const word = fc.stringMatching(/^[a-z][a-z0-9]{0,8}$/)
const optional = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined })
const defined = <T extends object>(arbitrary: fc.Arbitrary<T>) =>
  arbitrary.map((object) => Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined)))
const anyGit = defined(
  fc.record({ repository: fc.constant('https://git.example.com/r.git'), branch: word, path: optional(fc.constant('a.json')) }),
)
const anyApi = fc.record({ endpoint: fc.constant('https://registry.example.com') })
const anyConfigMap = defined(fc.record({ name: word, key: optional(word) }))
const anySource = fc.oneof(
  anyConfigMap.map((configMap) => ({ configMap })),
  anyConfigMap.map((configmap) => ({ type: 'configmap', configmap })),
  anyGit.map((each) => ({ type: 'git', git: each })),
  anyApi.map((api) => ({ api, format: 'upstream' })),
)
const anyEntry = fc.tuple(
  word,
  fc.oneof(
    anyGit.map((each) => ({ git: each })),
    anyApi.map((api) => ({ api })),
    anyConfigMap.map((configMapRef) => ({ configMapRef })),
    defined(fc.record({ matchLabels: fc.dictionary(word, word, { minKeys: 1 }), key: optional(word) })).map((configMapSelector) => ({
      configMapSelector,
    })),
  ),
)
const anySpec = fc
  .tuple(
    fc.oneof(
      anySource.map((source) => ({ source })),
      fc
        .array(anyEntry, { minLength: 1, maxLength: 3 })
        .map((entries) => ({ registries: entries.map(([name, source]) => ({ name, ...source })) })),
      word.map((configYAML) => ({ configYAML })),
    ),
    defined(
      fc.record({
        displayName: optional(word),
        enforceServers: optional(fc.boolean()),
        api: optional(fc.record({ enabled: fc.boolean() })),
      }),
    ),
  )
  .map(([shape, common]) => ({ ...common, ...shape }) as unknown as Spec)
