import { type Clock, systemClock } from '@thv/kernel/clock'
import { isThvError } from '@thv/kernel/errors'
import type { Exchange } from './exchange.ts'
import { sendJson, sendMethodNotAllowed } from './respond.ts'

export interface CheckResult {
  readonly ok: boolean
  /** Visible to every client of the port: no names of backends, no versions, no secrets. */
  readonly message?: string
}

export interface HealthOptions {
  readonly clock?: Clock
  /** Further members of the answer to `/health`; a `status` of "degraded" is still alive. */
  readonly details?: () => Readonly<Record<string, unknown>>
  readonly livenessPath?: string
  readonly readinessPath?: string
}

/** Liveness and readiness. Checks are asked, not awaited: each reports what its part already knows, so a probe never hangs. */
export interface Health {
  /** Replaces a check of the same name; the returned function takes it away. */
  addCheck(name: string, check: () => CheckResult): () => void
  ready(): ReadinessReport
  /** True when the path was one of the two and has been answered. */
  handle(exchange: Exchange): boolean
}

export interface ReadinessReport {
  readonly status: 'ready' | 'not_ready'
  readonly checks: Readonly<Record<string, CheckResult>>
}

const NO_STORE = ['Cache-Control', 'no-store']

export function createHealth(options: HealthOptions = {}): Health {
  const { clock = systemClock, details, livenessPath = '/health', readinessPath = '/ready' } = options
  const checks = new Map<string, () => CheckResult>()

  function live(): Record<string, unknown> {
    return { status: 'healthy', timestamp: new Date(clock.now()).toISOString(), ...details?.() }
  }

  function ready(): ReadinessReport {
    const results: Record<string, CheckResult> = {}
    let ok = true
    for (const [name, check] of checks) {
      const result = ask(check)
      results[name] = result
      ok &&= result.ok
    }
    return { status: ok ? 'ready' : 'not_ready', checks: results }
  }

  return {
    addCheck(name, check) {
      checks.set(name, check)
      return () => {
        if (checks.get(name) === check) checks.delete(name)
      }
    },
    ready,
    handle(exchange) {
      const { path } = exchange
      if (path !== livenessPath && path !== readinessPath) return false
      if (exchange.method !== 'GET' && exchange.method !== 'HEAD') sendMethodNotAllowed(exchange, 'GET, HEAD')
      else if (path === livenessPath) sendJson(exchange, live(), { headers: NO_STORE })
      else {
        const report = ready()
        sendJson(exchange, report, { status: report.status === 'ready' ? 200 : 503, headers: NO_STORE })
      }
      return true
    },
  }
}

function ask(check: () => CheckResult): CheckResult {
  try {
    return check()
  } catch (error) {
    // Anybody may ask: the text of an error, or of its causes, may quote a secret.
    return { ok: false, message: `the check failed: ${isThvError(error) ? error.code : 'internal_error'}` }
  }
}
