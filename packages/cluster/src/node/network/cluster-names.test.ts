import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { readClusterName } from './cluster-names.ts'

const domain = 'cluster.local'
const read = (host: string, namespace?: string) => readClusterName(host, { domain, ...(namespace === undefined ? {} : { namespace }) })

describe('readClusterName', () => {
  it.each([
    ['web.team.svc.cluster.local', [{ service: 'web', namespace: 'team' }], true],
    ['web.team.svc.cluster.local.', [{ service: 'web', namespace: 'team' }], true],
    ['WEB.Team.SVC', [{ service: 'web', namespace: 'team' }], true],
    ['pod-0.web.team.svc.cluster.local', [{ pod: 'pod-0', service: 'web', namespace: 'team' }], true],
    ['a.b.c.d.svc', [], true],
    ['web.svc.cluster.local', [], true],
    ['web.svc', [{ service: 'web', namespace: 'svc' }], false],
    ['a_b.team.svc', [], true],
    ['..svc', [], true],
    ['web.team', [{ service: 'web', namespace: 'team' }], false],
    ['web', [], false],
    ['api.example.com', [], false],
    ['', [], false],
    ['.', [], false],
    ['web.team/../x', [], false],
    [`${'a'.repeat(64)}.team`, [], false],
    [`${'a.'.repeat(130)}svc`, [], false],
  ])('%s', (host, candidates, certain) => {
    expect(read(host)).toEqual({ candidates, certain })
  })

  it('completes short names with the namespace of the caller, first', () => {
    expect(read('web', 'team').candidates).toEqual([{ service: 'web', namespace: 'team' }])
    expect(read('pod-0.web', 'team').candidates).toEqual([
      { pod: 'pod-0', service: 'web', namespace: 'team' },
      { service: 'pod-0', namespace: 'web' },
    ])
    expect(read('web', '../etc').candidates).toEqual([])
  })

  it('never gives out a name that could not be one', () => {
    const label = /^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$/
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.domain(), fc.stringMatching(/^[a-z.-]{0,40}\.svc$/)), fc.string(), (host, namespace) => {
        const parts = read(host, namespace).candidates.flatMap(({ pod = 'x', service, namespace: ns }) => [pod, service, ns])
        expect(parts.filter((part) => !label.test(part))).toEqual([])
      }),
    )
  })
})
