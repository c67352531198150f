import { checkWorkflow } from '@thv/workflow/check-workflow'
import { describe, expect, it } from 'vitest'
import { reviewAdmission } from './review-admission.ts'

const CYCLE = {
  name: 'order',
  description: 'Orders.',
  steps: [
    { id: 'a', tool: 'echo', dependsOn: ['b'] },
    { id: 'b', tool: 'echo', dependsOn: ['a'] },
  ],
}
const SOUND = { name: 'order', description: 'Orders.', steps: [{ id: 'a', tool: 'echo' }] }
const definition = (spec: object, metadata: object = {}) => ({ kind: 'VirtualMCPCompositeToolDefinition', metadata, spec })
const server = (spec: object) => ({
  kind: 'VirtualMCPServer',
  spec: { groupRef: { name: 'g' }, incomingAuth: { type: 'anonymous' }, ...spec },
})
const review = (object: unknown, oldObject: unknown = null) =>
  reviewAdmission({ apiVersion: 'admission.k8s.io/v1', kind: 'AdmissionReview', request: { uid: 'u1', object, oldObject } })?.response

describe('reviewAdmission', () => {
  it('lets a sound definition in', () => {
    expect(review(definition(SOUND))).toEqual({ uid: 'u1', allowed: true })
  })

  it('refuses a definition with the texts of the one check', () => {
    const [problem] = checkWorkflow(CYCLE as never).problems
    expect(review(definition(CYCLE))).toEqual({
      uid: 'u1',
      allowed: false,
      status: { code: 422, reason: 'Invalid', message: problem?.message },
    })
  })

  it('refuses a server for its own fields and for its composite tools, which are named by their place', () => {
    expect(review(server({}))).toEqual({ uid: 'u1', allowed: true })
    expect(review(server({ config: { compositeTools: [SOUND, CYCLE] } }))?.status?.message).toMatch(
      /spec\.config\.compositeTools\[1\].*a → b → a/,
    )
    expect(review(server({ config: { groupRef: 'other' } }))?.status?.message).toContain('spec.groupRef')
  })

  it('names ten problems at most', () => {
    const steps = Array.from({ length: 40 }, (_, index) => ({ id: `s${index}`, tool: 'echo', arguments: { x: '{{.params.no}}' } }))
    const message = review(definition({ ...SOUND, steps }))?.status?.message
    expect(message).toMatch(/; and 30 more$/)
  })

  it('an invalid object that is stored already may be labeled and deleted, with a warning', () => {
    const stored = definition(CYCLE)
    expect(review(definition(CYCLE, { labels: { a: 'b' } }), stored)).toMatchObject({
      allowed: true,
      warnings: [expect.stringContaining('→')],
    })
    expect(review(definition(CYCLE, { deletionTimestamp: 'now' }))).toMatchObject({ allowed: true })
    expect(review(definition({ ...CYCLE, timeout: '1m' }), stored)).toMatchObject({ allowed: false })
  })

  it.each([undefined, null, 7, [], {}, { kind: 'AdmissionReview' }, { kind: 'AdmissionReview', request: { uid: 7 } }])(
    'takes nothing else for a review: %j',
    (document) => {
      expect(reviewAdmission(document)).toBeUndefined()
    },
  )

  it.each([null, undefined, 7, {}, { kind: 'Pod', spec: {} }, { kind: 'VirtualMCPServer' }])('has no opinion about %j', (object) => {
    expect(review(object)).toEqual({ uid: 'u1', allowed: true })
  })
})
