import type { HttpBackendLimits } from '@thv/gateway/relay/relay-limits'
import { parseDuration, tryParseDuration } from '@thv/kernel/duration'
import type { RunConfig } from '@thv/runconfig/run-config'
import type { Log } from '@thv/telemetry/log'

export type Env = Readonly<Record<string, string | undefined>>

/** As ToolHive (Go) reports it. */
export function isInCluster(env: Env): boolean {
  return env['TOOLHIVE_RUNTIME'] === 'kubernetes' || Boolean(env['KUBERNETES_SERVICE_HOST'])
}

export interface RunnerSettings {
  readonly sessionTtlMs: number
  /** Times from the environment; absent where it has none. */
  readonly limits: Partial<HttpBackendLimits>
  /** Whether a server elsewhere is asked again and again whether it is there. */
  readonly watchesRemote: boolean
}

/** The variables of ToolHive (Go). One that cannot be read is warned of and has no effect. */
export function runnerSettings(config: RunConfig, env: Env, log: Log): RunnerSettings {
  const duration = (name: string): number | undefined => {
    const text = env[name]
    if (text === undefined || text === '') return undefined
    const ms = tryParseDuration(text)
    if (ms !== undefined && ms > 0) return ms
    log.warn(`${name} is not a duration above 0, such as 30s, and has no effect`)
    return undefined
  }
  const count = (name: string): number | undefined => {
    const text = env[name]
    if (text === undefined || text === '') return undefined
    if (/^[1-9]\d{0,5}$/.test(text)) return Number(text)
    log.warn(`${name} is not a number above 0 and has no effect`)
    return undefined
  }
  const sessionTtlMs = parseDuration(config.session_ttl) || parseDuration('2h')
  return {
    sessionTtlMs,
    limits: present({
      sessionTtlMs,
      idleMs: duration('TOOLHIVE_PROXY_REQUEST_TIMEOUT'),
      checkIntervalMs: duration('TOOLHIVE_HEALTH_CHECK_INTERVAL'),
      checkTimeoutMs: duration('TOOLHIVE_HEALTH_CHECK_PING_TIMEOUT'),
      checkThreshold: count('TOOLHIVE_HEALTH_CHECK_FAILURE_THRESHOLD'),
    }),
    watchesRemote: ['1', 'true'].includes(env['TOOLHIVE_REMOTE_HEALTHCHECKS']?.toLowerCase() ?? ''),
  }
}

function present(limits: { readonly [K in keyof HttpBackendLimits]?: number | undefined }): Partial<HttpBackendLimits> {
  return Object.fromEntries(Object.entries(limits).filter(([, value]) => value !== undefined))
}
