import type { KubeEvent, Pod } from '@thv/kube'
import { describe, expect, it } from 'vitest'
import { newestReport } from './runner-report.ts'

const owner = { metadata: { name: 'demo', uid: 'u1' } }
const pod = (name: string, more: object = {}): Pod => ({ metadata: { name, ...more }, status: { phase: 'Running' } })
const event = (reason: string, second: number, more: Partial<KubeEvent> = {}): KubeEvent => ({
  ...{ metadata: { name: reason }, type: 'Warning', reason, note: `${reason}.`, regarding: { uid: 'u1', name: 'demo' } },
  ...{ reportingInstance: 'proxy-1', eventTime: `2026-01-01T00:00:0${second}.000000Z`, ...more },
})

describe('newestReport', () => {
  it('is the newest event, also when only its last repetition is', () => {
    const events = [event('BackendPortClosed', 1), event('BackendNotMcp', 2)]
    expect(newestReport(events, owner, [pod('proxy-1')])).toEqual({ reason: 'BackendNotMcp', message: 'BackendNotMcp.' })
    const repeated = event('BackendPortClosed', 1, { series: { count: 2, lastObservedTime: '2026-01-01T00:00:03.000000Z' } })
    expect(newestReport([repeated, event('BackendNotMcp', 2)], owner, [pod('proxy-1')])?.reason).toBe('BackendPortClosed')
  })

  it('is none when the runner has taken it back', () => {
    const events = [event('BackendPortClosed', 1), event('BackendRecovered', 2, { type: 'Normal' })]
    expect(newestReport(events, owner, [pod('proxy-1')])).toBeUndefined()
  })

  it('is none of a pod that is gone or going, nor of an earlier object of the name', () => {
    const told = [event('BackendPortClosed', 1)]
    expect(newestReport(told, owner, [pod('proxy-2')])).toBeUndefined()
    expect(newestReport(told, owner, [pod('proxy-1', { deletionTimestamp: '2026-01-01T00:00:00Z' })])).toBeUndefined()
    expect(newestReport(told, { metadata: { name: 'demo', uid: 'u2' } }, [pod('proxy-1')])).toBeUndefined()
    expect(newestReport([], owner, [pod('proxy-1')])).toBeUndefined()
  })
})
