import type { Clock } from '@thv/kernel/clock'
import type { ContainerSpec, ProbeSpec } from '../pod/pod-spec.ts'
import { type HandlerEnv, runHandler } from './run-handler.ts'

export type ProbeKind = 'Startup' | 'Readiness' | 'Liveness'

export interface ProbeHooks {
  /** The startup probe has succeeded, or there is none. */
  onStarted(): void
  onReady(ready: boolean): void
  /** The container must be ended: `kind` says which probe wants it. */
  onDead(kind: ProbeKind, probe: ProbeSpec): void
  /** A probe has failed, whether that changes anything or not. */
  onFailure(kind: ProbeKind, output: string): void
}

export interface ProbesInput {
  readonly container: ContainerSpec
  readonly handler: HandlerEnv
  readonly hooks: ProbeHooks
  readonly clock: Clock
  readonly signal: AbortSignal
}

/** Runs a container's probes until the signal aborts. Never rejects. */
export async function runProbes(input: ProbesInput): Promise<void> {
  const { container, hooks, signal } = input
  const { startupProbe, readinessProbe, livenessProbe } = container
  try {
    if (startupProbe && !(await untilStarted(startupProbe, input))) return
    hooks.onStarted()
    if (!readinessProbe) hooks.onReady(true)
    await Promise.all([
      readinessProbe && watchProbe('Readiness', readinessProbe, { ...input, onVerdict: (ok) => hooks.onReady(ok) }),
      livenessProbe &&
        watchProbe('Liveness', livenessProbe, { ...input, onVerdict: (ok) => ok || hooks.onDead('Liveness', livenessProbe) }),
    ])
  } catch (error) {
    if (!signal.aborted) throw error
  }
}

/** False when it failed too often: the container is to be ended. */
async function untilStarted(probe: ProbeSpec, input: ProbesInput): Promise<boolean> {
  const end = Promise.withResolvers<boolean>()
  const stop = new AbortController()
  const onStop = () => stop.abort(input.signal.reason)
  input.signal.addEventListener('abort', onStop, { once: true })
  const onVerdict = (ok: boolean) => {
    end.resolve(ok)
    stop.abort()
  }
  const watching = watchProbe('Startup', probe, { ...input, signal: stop.signal, onVerdict }).catch(() => end.resolve(false))
  try {
    const ok = await end.promise
    await watching
    input.signal.throwIfAborted()
    if (!ok) input.hooks.onDead('Startup', probe)
    return ok
  } finally {
    input.signal.removeEventListener('abort', onStop)
  }
}

/** Before its first success a server is asked more often than its period says, so that a quick one is ready quickly. */
const EAGER_MS = 50
const EAGER_MAX_MS = 1_000

/** Tells each verdict that differs from the one before, as the thresholds have it. Ends by the signal only. */
async function watchProbe(
  kind: ProbeKind,
  probe: ProbeSpec,
  { handler, hooks, clock, signal, onVerdict }: ProbesInput & { onVerdict: (ok: boolean) => void },
): Promise<void> {
  const periodMs = (probe.periodSeconds ?? 10) * 1_000
  const { successThreshold = 1, failureThreshold = 3 } = probe
  let verdict: boolean | undefined
  let successes = 0
  let failures = 0
  const judge = (ok: boolean) => {
    successes = ok ? successes + 1 : 0
    failures = ok ? 0 : failures + 1
    if (ok ? successes < successThreshold : failures < failureThreshold) return
    if (verdict !== ok) onVerdict(ok)
    verdict = ok
    // A liveness probe that failed has done its work; its container is being ended.
  }
  await clock.sleep((probe.initialDelaySeconds ?? 0) * 1_000, signal)
  for (let eagerMs = EAGER_MS; ; ) {
    signal.throwIfAborted()
    const result = await attempt(probe, { handler, clock, signal })
    signal.throwIfAborted()
    if (!result.ok) hooks.onFailure(kind, result.output)
    judge(result.ok)
    let waited = 0
    // Extra attempts can only bring good news: they count as success, never as failure.
    while (kind !== 'Liveness' && !probe.exec && verdict === undefined && !result.ok && waited + eagerMs < periodMs) {
      await clock.sleep(eagerMs, signal)
      waited += eagerMs
      eagerMs = Math.min(EAGER_MAX_MS, eagerMs * 2)
      if (successThreshold === 1 && (await attempt(probe, { handler, clock, signal })).ok) judge(true)
    }
    await clock.sleep(Math.max(0, periodMs - waited), signal)
  }
}

async function attempt(probe: ProbeSpec, { handler, clock, signal }: { handler: HandlerEnv; clock: Clock; signal: AbortSignal }) {
  const limit = new AbortController()
  const onStop = () => limit.abort(signal.reason)
  signal.addEventListener('abort', onStop, { once: true })
  const timer = clock.setTimer((probe.timeoutSeconds ?? 1) * 1_000, () => limit.abort(new Error('timeout')))
  try {
    return await runHandler(probe, handler, limit.signal)
  } finally {
    timer.cancel()
    signal.removeEventListener('abort', onStop)
  }
}
