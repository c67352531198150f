import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { configMaps, namespaces } from '../objects/resource-types.ts'
import { cutBytes, eventKey, eventName, eventObject } from './event-object.ts'

const reporter = { controller: 'test.dev/unit', instance: 'pod-1' }
const input = { type: 'Normal', reason: 'Applied', note: 'all there' } as const

describe('eventObject', () => {
  it('spells the fields of events.k8s.io/v1', () => {
    const object = { metadata: { name: 'web', namespace: 'team', uid: 'u1', resourceVersion: '7' } }
    const related = { type: namespaces, object: { metadata: { name: 'team' } } }
    expect(
      eventObject(
        { type: configMaps, object },
        { ...input, related },
        { reporter, name: 'web.1', timeMs: Date.UTC(2026, 1, 2, 3, 4, 5, 6) },
      ),
    ).toEqual({
      metadata: { name: 'web.1', namespace: 'team' },
      eventTime: '2026-02-02T03:04:05.006000Z',
      type: 'Normal',
      reason: 'Applied',
      action: 'Reconcile',
      note: 'all there',
      regarding: { apiVersion: 'v1', kind: 'ConfigMap', namespace: 'team', name: 'web', uid: 'u1', resourceVersion: '7' },
      related: { apiVersion: 'v1', kind: 'Namespace', name: 'team' },
      reportingController: 'test.dev/unit',
      reportingInstance: 'pod-1',
    })
  })

  it('puts the event of a cluster-scoped object into default', () => {
    const event = eventObject(
      { type: namespaces, object: { metadata: { name: 'team' } } },
      { ...input, action: 'Look' },
      { reporter, name: 'n', timeMs: 0 },
    )
    expect(event.metadata.namespace).toBe('default')
    expect(event.regarding).not.toHaveProperty('namespace')
    expect(event.action).toBe('Look')
  })
})

describe('cutBytes', () => {
  it('keeps within the limit, whole characters only, and marks the cut', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 60 }), fc.integer({ min: 3, max: 40 }), (text, limit) => {
        const cut = cutBytes(text, limit)
        expect(Buffer.byteLength(cut)).toBeLessThanOrEqual(limit)
        if (Buffer.byteLength(text.toWellFormed()) <= limit) expect(cut).toBe(text.toWellFormed())
        else expect(text.toWellFormed().startsWith(cut.slice(0, -1)) && cut.endsWith('…')).toBe(true)
      }),
    )
  })
})

describe('eventName', () => {
  it('is a DNS subdomain of at most 253 characters, whatever the object is called', () => {
    fc.assert(
      fc.property(fc.string({ maxLength: 300 }), (name) => {
        const made = eventName({ metadata: { name } }, Date.UTC(2026, 1, 2))
        expect(made).toMatch(/^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/)
        expect(made.length).toBeLessThanOrEqual(253)
      }),
    )
  })

  it('is another one each time', () => {
    const object = { metadata: { name: 'web' } }
    expect(new Set(Array.from({ length: 1_000 }, () => eventName(object, 7))).size).toBe(1_000)
  })

  it('grows with time, also within a millisecond, because kubectl shows events in the order of their names', () => {
    const object = { metadata: { name: 'web' } }
    const now = Date.UTC(2026, 1, 2)
    const made = Array.from({ length: 3_000 }, (_, index) => eventName(object, now + Math.floor(index / 100)))
    expect(made.toSorted()).toEqual(made)
  })
})

describe('eventKey', () => {
  it('differs by object, type, reason, note and action', () => {
    const a = { metadata: { name: 'web', namespace: 'n', uid: '1' } }
    const keys = [
      eventKey(a, input),
      eventKey({ metadata: { ...a.metadata, uid: '2' } }, input),
      eventKey(a, { ...input, type: 'Warning' }),
      eventKey(a, { ...input, reason: 'Other' }),
      eventKey(a, { ...input, note: 'other' }),
      eventKey(a, { ...input, action: 'Other' }),
    ]
    expect(new Set(keys).size).toBe(keys.length)
    expect(eventKey({ metadata: { ...a.metadata, resourceVersion: '9' } }, input)).toBe(keys[0])
  })
})
