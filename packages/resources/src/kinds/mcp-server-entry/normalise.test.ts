import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type CanonicalMCPServerEntrySpec, normaliseMcpServerEntry } from './normalise.ts'
import type { MCPServerEntry } from './schema.ts'

type Spec = MCPServerEntry['spec']

const minimal: Spec = { remoteUrl: 'https://mcp.example.com', transport: 'sse', groupRef: 'g' }
const header = (headerName: string, key = 'k') => ({ headerName, valueSecretRef: { name: 's', key } })

describe('normaliseMcpServerEntry', () => {
  it('fills in every default', () => {
    expect(normaliseMcpServerEntry({ spec: minimal })).toEqual({
      spec: {
        remoteUrl: 'https://mcp.example.com',
        transport: 'sse',
        groupRef: { name: 'g' },
        headerForward: { addPlaintextHeaders: {}, addHeadersFromSecret: [] },
        insecureAllowHTTP: false,
        allowPrivateEndpoint: false,
      },
      problems: [],
    })
  })

  it.each<[string, Spec['caBundleRef'], { name: string; key: string; optional: boolean }]>([
    ['the ConfigMap wrapped', { configMapRef: { name: 'a', key: 'k', optional: true } }, { name: 'a', key: 'k', optional: true }],
    ['the ConfigMap flat', { name: 'a', key: 'k' }, { name: 'a', key: 'k', optional: false }],
    ['no key', { configMapRef: { name: 'a' } }, { name: 'a', key: 'ca.crt', optional: false }],
    ['no key, flat', { name: 'a' }, { name: 'a', key: 'ca.crt', optional: false }],
    ['the default key in one spelling only', { configMapRef: { name: 'a' }, key: 'ca.crt' }, { name: 'a', key: 'ca.crt', optional: false }],
  ])('reads a CA bundle with %s', (_title, caBundleRef, configMapRef) => {
    const { spec, problems } = normaliseMcpServerEntry({ spec: { ...minimal, caBundleRef } as Spec })
    expect(spec.caBundleRef).toEqual({ configMapRef })
    expect(problems).toEqual([])
  })

  it.each<[string, Record<string, unknown>, string, string]>([
    ['two URLs', { remoteURL: 'https://other.example.com' }, 'spec.remoteUrl', 'conflicting_spellings'],
    ['no URL', { remoteUrl: undefined }, 'spec.remoteUrl', 'missing'],
    ['no group', { groupRef: undefined }, 'spec.groupRef', 'missing'],
    ['a number as group', { groupRef: 3 }, 'spec.groupRef', 'wrong_type'],
    ['a list as group', { groupRef: ['a'] }, 'spec.groupRef', 'wrong_type'],
    [
      'two lists of headers',
      { headerForward: { addHeadersFromSecret: [header('X-A', 'a')], addHeadersFromSecrets: [header('X-A', 'b')] } },
      'spec.headerForward.addHeadersFromSecret',
      'conflicting_spellings',
    ],
    [
      'two CA bundles',
      { caBundleRef: { configMapRef: { name: 'a' }, name: 'b' } },
      'spec.caBundleRef.configMapRef.name',
      'conflicting_spellings',
    ],
    ['a CA bundle without a name', { caBundleRef: { key: 'k' } }, 'spec.caBundleRef', 'missing'],
  ])('reports %s', (_title, changes, field, code) => {
    const { problems } = normaliseMcpServerEntry({ spec: { ...minimal, ...changes } as Spec })
    expect(problems).toEqual([expect.objectContaining({ field, code })])
  })

  it('never throws on a group that the server may have stored', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (groupRef) => {
        const { spec, problems } = normaliseMcpServerEntry({ spec: { ...minimal, groupRef } as Spec })
        expect(spec.groupRef === undefined).toBe(problems.length === 1)
      }),
    )
  })

  it('gives the same object for every accepted spelling, and changes nothing the second time', () => {
    fc.assert(
      fc.property(canonicalSpec, fc.infiniteStream(fc.boolean()), (canonical, coins) => {
        const result = normaliseMcpServerEntry({ spec: respelled(canonical, coins) })
        expect(result).toEqual({ spec: canonical, problems: [] })
        expect(normaliseMcpServerEntry({ spec: result.spec as Spec })).toEqual(result)
      }),
    )
  })
})

const name = fc.stringMatching(/^[a-z]{1,8}$/)
const headerName = fc.stringMatching(/^X-[A-Z]{1,4}$/)
const optional = <T>(arbitrary: fc.Arbitrary<T>) => fc.option(arbitrary, { nil: undefined })

const canonicalSpec: fc.Arbitrary<CanonicalMCPServerEntrySpec> = fc
  .record({
    remoteUrl: fc.webUrl(),
    transport: fc.constantFrom('sse', 'streamable-http'),
    groupRef: fc.record({ name }),
    externalAuthConfigRef: optional(fc.record({ name })),
    headerForward: fc.record({
      addPlaintextHeaders: fc.dictionary(headerName, fc.string(), { noNullPrototype: true }),
      addHeadersFromSecret: fc
        .uniqueArray(fc.record({ headerName, valueSecretRef: fc.record({ name, key: name }) }), { selector: (h) => h.headerName })
        .map((headers) => headers.toSorted((a, b) => (a.headerName < b.headerName ? -1 : 1))),
    }),
    caBundleRef: optional(
      fc.record({ configMapRef: fc.record({ name, key: fc.oneof(name, fc.constant('ca.crt')), optional: fc.boolean() }) }),
    ),
    insecureAllowHTTP: fc.boolean(),
    allowPrivateEndpoint: fc.boolean(),
  })
  .map((spec) => JSON.parse(JSON.stringify(spec)))

/** Writes a canonical spec with randomly chosen accepted spellings. */
function respelled(canonical: CanonicalMCPServerEntrySpec, coins: fc.Stream<boolean>): Spec {
  const coin = () => coins.next().value as boolean
  const { remoteUrl, groupRef, headerForward, caBundleRef, insecureAllowHTTP, allowPrivateEndpoint, ...rest } = canonical
  const { addPlaintextHeaders, addHeadersFromSecret } = headerForward
  const spec: Record<string, unknown> = {
    ...rest,
    ...spellings({ remoteUrl }, { remoteURL: remoteUrl }, coin),
    groupRef: coin() ? groupRef : groupRef?.name,
    headerForward: {
      ...(coin() || Object.keys(addPlaintextHeaders).length > 0 ? { addPlaintextHeaders } : {}),
      ...spellings({ addHeadersFromSecret }, { addHeadersFromSecrets: addHeadersFromSecret.toReversed() }, coin),
    },
  }
  if (insecureAllowHTTP || coin()) spec['insecureAllowHTTP'] = insecureAllowHTTP
  if (allowPrivateEndpoint || coin()) spec['allowPrivateEndpoint'] = allowPrivateEndpoint
  if (caBundleRef) {
    const { configMapRef } = caBundleRef
    const { name: configMap, key } = configMapRef
    const wrapped = { configMapRef: coin() && key === 'ca.crt' ? { name: configMap, optional: configMapRef.optional } : configMapRef }
    spec['caBundleRef'] = configMapRef.optional ? wrapped : spellings(wrapped, { name: configMap, key }, coin)
  }
  return spec as Spec
}

/** One spelling, the other, or both. */
function spellings(canonical: object, synonym: object, coin: () => boolean): object {
  if (coin()) return { ...canonical, ...synonym }
  return coin() ? canonical : synonym
}
