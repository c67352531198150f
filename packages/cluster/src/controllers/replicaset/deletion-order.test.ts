import type { Pod } from '@thv/kube'
import { describe, expect, it } from 'vitest'
import { podsToDelete } from './deletion-order.ts'

const NOW = Date.parse('2026-01-01T12:00:00Z')

function pod(name: string, { node = 'n1', phase = 'Running', ready = true, since = '2026-01-01T00:00:00Z', ...more } = {}): Pod {
  const { cost, created = '2026-01-01T00:00:00Z', restarts = 0 } = more as { cost?: string; created?: string; restarts?: number }
  return {
    metadata: {
      name,
      uid: name,
      creationTimestamp: created,
      ...(cost !== undefined && { annotations: { 'controller.kubernetes.io/pod-deletion-cost': cost } }),
    },
    spec: { containers: [], nodeName: node },
    status: {
      phase,
      conditions: [{ type: 'Ready', status: ready ? 'True' : 'False', lastTransitionTime: since }],
      containerStatuses: [{ name: 'main', restartCount: restarts }],
    },
  }
}

function order(...pods: Pod[]): string[] {
  return podsToDelete([...pods, pod('zzz-stays', { cost: '2147483647' } as object)], pods.length, { related: [], now: NOW }).map(
    ({ metadata }) => metadata.name,
  )
}

describe('the order in which pods go', () => {
  it.each([
    ['no node before a node', pod('b', { node: '', ready: true }), pod('a', { ready: false })],
    ['pending before running', pod('b', { phase: 'Pending', ready: false }), pod('a', { ready: false })],
    ['not ready before ready', pod('b', { ready: false }), pod('a')],
    ['cheaper before dearer', pod('b', { cost: '-5' } as object), pod('a')],
    ['a cost that is no number counts as none', pod('b', { cost: '+5' } as object), pod('a', { cost: '1' } as object)],
    ['ready for minutes before ready for hours', pod('b', { since: '2026-01-01T11:55:00Z' }), pod('a')],
    ['restarted more often first', pod('b', { restarts: 4 } as object), pod('a', { restarts: 1 } as object)],
    ['younger first', pod('b', { created: '2026-01-01T11:59:00Z' } as object), pod('a')],
    ['of about one age by uid', pod('a', { since: '2026-01-01T00:10:00Z' }), pod('b', { since: '2026-01-01T00:20:00Z' })],
  ])('%s', (_, first, second) => {
    expect(order(second, first)).toEqual([first.metadata.name, second.metadata.name])
    expect(order(first, second)).toEqual([first.metadata.name, second.metadata.name])
  })

  it('takes those on the fullest node first', () => {
    const pods = [pod('a', { node: 'empty' }), pod('b', { node: 'full' }), pod('c', { node: 'full' })]
    expect(podsToDelete(pods, 2, { related: pods, now: NOW }).map(({ metadata }) => metadata.name)).toEqual(['b', 'c'])
  })
})
