import type { Pod } from '@thv/kube'

export function readyPod(name: string, more: { second?: number; restarts?: number; uid?: string } = {}): Pod {
  const { second = 0, restarts = 0, uid = `uid-${name}` } = more
  return {
    metadata: { name, namespace: 'team-a', uid, creationTimestamp: `2026-01-01T00:00:0${second}Z` },
    status: {
      phase: 'Running',
      conditions: [{ type: 'Ready', status: 'True' }],
      containerStatuses: [{ name: 'mcp', ready: true, restartCount: restarts, state: { running: {} } }],
    },
  }
}
