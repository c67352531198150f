import { describe, expect, it } from 'vitest'
import { deploymentSettings } from './deployment-settings.ts'

function settings(replicas: number, maxSurge?: number | string, maxUnavailable?: number | string) {
  const rollingUpdate = { ...(maxSurge !== undefined && { maxSurge }), ...(maxUnavailable !== undefined && { maxUnavailable }) }
  return deploymentSettings({ metadata: { name: 'web' }, spec: { replicas, strategy: { type: 'RollingUpdate', rollingUpdate } } })
}

describe('settings of a Deployment', () => {
  it.each([
    // replicas, given, expected
    [10, '25%', '25%', 3, 2],
    [1, '25%', '25%', 1, 0],
    [4, '25%', '25%', 1, 1],
    [3, '50%', 0, 2, 0],
    [2, 0, '10%', 0, 1],
    [0, '25%', '25%', 0, 0],
    [3, '100%', '100%', 3, 3],
    [2, 1, 5, 1, 2],
    [7, '34%', '34%', 3, 2],
  ])('%i pods with a surge of %s and %s missing: %i and %i', (replicas, surge, unavailable, maxSurge, maxUnavailable) => {
    expect(settings(replicas, surge, unavailable)).toMatchObject({ maxSurge, maxUnavailable })
  })

  it('has the defaults of the server', () => {
    expect(deploymentSettings({ metadata: { name: 'web' } })).toEqual({
      replicas: 1,
      recreate: false,
      paused: false,
      maxSurge: 1,
      maxUnavailable: 0,
      minReadySeconds: 0,
      historyLimit: 10,
      progressDeadlineSeconds: 600,
    })
  })

  it('takes the largest number for no limit', () => {
    const spec = { revisionHistoryLimit: 2_147_483_647, progressDeadlineSeconds: 2_147_483_647 }
    expect(deploymentSettings({ metadata: { name: 'web' }, spec })).toMatchObject({
      historyLimit: undefined,
      progressDeadlineSeconds: undefined,
    })
  })
})
