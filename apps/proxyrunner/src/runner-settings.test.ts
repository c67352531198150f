import { CollectingLog } from '@thv/telemetry/testing/collecting-log'
import { describe, expect, it } from 'vitest'
import { isInCluster, runnerSettings } from './runner-settings.ts'
import { configOf } from './runtime/testing/runtime-fixtures.ts'

describe('the settings of a runner', () => {
  it('come from the run config and the variables of ToolHive (Go)', () => {
    const env = {
      TOOLHIVE_PROXY_REQUEST_TIMEOUT: '90s',
      TOOLHIVE_HEALTH_CHECK_INTERVAL: '5s',
      TOOLHIVE_HEALTH_CHECK_PING_TIMEOUT: '500ms',
      TOOLHIVE_HEALTH_CHECK_FAILURE_THRESHOLD: '7',
      TOOLHIVE_REMOTE_HEALTHCHECKS: 'TRUE',
    }
    expect(runnerSettings(configOf({ session_ttl: '30m' }), env, new CollectingLog())).toEqual({
      sessionTtlMs: 1_800_000,
      limits: { sessionTtlMs: 1_800_000, idleMs: 90_000, checkIntervalMs: 5_000, checkTimeoutMs: 500, checkThreshold: 7 },
      watchesRemote: true,
    })
  })

  it('are the defaults where nothing is said, or nothing that can be read', () => {
    const log = new CollectingLog()
    const env = {
      TOOLHIVE_PROXY_REQUEST_TIMEOUT: 'soon',
      TOOLHIVE_HEALTH_CHECK_INTERVAL: '-1s',
      TOOLHIVE_HEALTH_CHECK_FAILURE_THRESHOLD: '0',
    }
    const { sessionTtlMs, limits, watchesRemote } = runnerSettings(configOf({}), env, log)
    expect({ sessionTtlMs, limits, watchesRemote }).toEqual({
      sessionTtlMs: 7_200_000,
      limits: { sessionTtlMs: 7_200_000 },
      watchesRemote: false,
    })
    expect(log.lines).toHaveLength(3)
  })

  it.each([
    [{ TOOLHIVE_RUNTIME: 'kubernetes' }, true],
    [{ KUBERNETES_SERVICE_HOST: '10.0.0.1' }, true],
    [{ KUBERNETES_SERVICE_HOST: '' }, false],
    [{}, false],
  ])('%j is in a cluster: %s', (env, expected) => {
    expect(isInCluster(env)).toBe(expected)
  })
})
