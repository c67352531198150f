import { describe, expect, it } from 'vitest'
import { KubeApiError } from '../client/kube-api-error.ts'
import { refusedWrite } from './refused-write.ts'

interface Answer {
  readonly verb?: string
  readonly kind?: string
  readonly status: number
  readonly message: string
  readonly subresource?: string
}

const answered = ({ verb = 'apply', kind = 'ConfigMap', status, message, subresource }: Answer) =>
  new KubeApiError({
    call: { verb, target: 'objects team/web', object: { kind, namespace: 'team', name: 'web', subresource } },
    status,
    body: { message, reason: status === 403 ? 'Forbidden' : 'Invalid' },
  })

const quota =
  'configmaps "web" is forbidden: exceeded quota: small, requested: count/configmaps=1, used: count/configmaps=3, limited: count/configmaps=3'
const frozen = 'ConfigMap "web" is invalid: data: Forbidden: field is immutable when `immutable` is set'

describe('a refused write', () => {
  it.each<[string, Answer, string]>([
    [
      'an immutable ConfigMap',
      { status: 422, message: frozen, verb: 'patch' },
      'The API server does not let the operator update ConfigMap web: it is immutable, or a field of it that must change is. Delete it: the operator creates it again.',
    ],
    [
      'a quota',
      { status: 403, message: quota },
      'The API server does not let the operator write ConfigMap web: exceeded quota: small, requested: count/configmaps=1, used: count/configmaps=3, limited: count/configmaps=3. Raise the quota, or delete objects that are not needed.',
    ],
    [
      'an admission rule',
      { status: 403, kind: 'Deployment', message: 'admission webhook "rules.example.com" denied the request: no latest tags.' },
      'The API server does not let the operator write Deployment web: admission webhook "rules.example.com" denied the request: no latest tags. Change the resource, or the admission rule that rejects it.',
    ],
    [
      'a permission',
      {
        status: 403,
        kind: 'Role',
        verb: 'delete',
        message: 'roles "web" is forbidden: User "op" cannot delete resource "roles" in API group',
      },
      'The API server does not let the operator delete Role web: roles "web" is forbidden: User "op" cannot delete resource "roles" in API group. Give the ServiceAccount of the operator this permission; the chart has all that it needs.',
    ],
    [
      'its size',
      { status: 422, verb: 'create', message: 'ConfigMap "web" is invalid: []: Too long: may not be more than 1048576 bytes' },
      'The API server does not let the operator create ConfigMap web: ConfigMap "web" is invalid: []: Too long: may not be more than 1048576 bytes. It is too large: make the resource smaller.',
    ],
  ])('names %s, the object and what to do', (_, answer, expected) => {
    expect(refusedWrite(answered(answer), 'the operator')).toBe(expected)
  })

  it('quotes nothing of a Secret, and little of anything else', () => {
    const hunter = answered({ kind: 'Secret', status: 422, message: 'Secret "web" is invalid: data[key]: Invalid value: "hunter2"' })
    expect(refusedWrite(hunter, 'the operator')).toContain('Secret web: it answers 422 Invalid.')
    expect(refusedWrite(answered({ kind: 'Secret', status: 422, message: frozen }), 'the operator')).toContain(
      'a copy without immutable: true',
    )
    expect(refusedWrite(answered({ status: 422, message: 'x'.repeat(10_000) }), 'the operator')?.length).toBeLessThan(700)
  })

  it.each<[string, unknown]>([
    ['another error', new Error('immutable')],
    ['a conflict', answered({ status: 409, message: 'changed' })],
    ['an overloaded server', answered({ status: 429, message: 'later' })],
    ['a read', answered({ verb: 'get', status: 403, message: 'no' })],
    ['a status, which then cannot tell', answered({ verb: 'patch', status: 422, message: 'no', subresource: 'status' })],
  ])('is not %s', (_, error) => {
    expect(refusedWrite(error, 'the operator')).toBeUndefined()
  })
})
