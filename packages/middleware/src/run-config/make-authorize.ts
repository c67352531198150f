import { HINTS, type Hints } from '@thv/authz/access/operation'
import { mountedPath } from '@thv/kernel/mounted-path'
import type { RunConfig } from '@thv/runconfig/run-config'
import { runConfigError } from '@thv/runconfig/run-config-errors'
import { createAuthorize } from '../authorize/authorize.ts'
import { createDecisionMetrics, createLoadMetrics } from '../authorize/authorize-metrics.ts'
import { LivePolicies } from '../authorize/live-policies.ts'
import type { MiddlewareDeps } from '../from-run-config.ts'
import { InvalidOptions } from '../pipeline/invalid-options.ts'
import type { Middleware } from '../pipeline/middleware.ts'
import { compileToolNames } from '../tool-filter/tool-names.ts'
import { challengesOf } from './make-authenticate.ts'

export interface OpenPoliciesDeps extends Pick<MiddlewareDeps, 'log' | 'clock' | 'metrics'> {
  /** Main module of worker threads, which calls `runPolicyWorker` in them: a bundle names itself. */
  readonly workerEntry?: URL | undefined
}

/**
 * Loads the policies of a RunConfig, which takes a thread and a while. Undefined: it asks for none. Rejects with `run_config_invalid` when
 * they do not work: a proxy without them would stand open.
 */
export async function openPolicies(config: RunConfig, deps: OpenPoliciesDeps): Promise<LivePolicies | undefined> {
  const { authz_config: inline, authz_config_path: path, name: server } = config
  if (inline === undefined && path === undefined) return undefined
  const { log, clock, workerEntry } = deps
  const { loaded: onLoaded } = createLoadMetrics(deps.metrics)
  try {
    const source = inline === undefined ? { path: mountedPath(checkedPath(path ?? '')) } : { config: inline }
    return await LivePolicies.open({ source, server, workerEntry }, { log, clock, onLoaded })
  } catch (error) {
    if (!(error instanceof InvalidOptions)) throw error
    throw runConfigError('run_config_invalid', `${inline === undefined ? 'authz_config_path' : 'authz_config'}: ${error.message}`)
  }
}

export function makeAuthorize(config: RunConfig, { policies, metrics }: MiddlewareDeps): Middleware | undefined {
  if (config.authz_config === undefined && config.authz_config_path === undefined) return undefined
  if (policies === undefined) throw new TypeError('the policies of the run config are not open')
  const { decided, differed } = createDecisionMetrics(metrics)
  const names = compileToolNames({ filter: config.tools_filter, overrides: config.tools_override })
  const middleware = createAuthorize({
    policies,
    visibleName: (name) => names.visibleOf(name) ?? name,
    hintOverrides: (name) => overriddenHints(names.overrides.get(name)?.annotations),
    insufficientScope: challengesOf(config)?.insufficientScope,
    onDecision: decided,
    onDifference: differed,
  })
  return { ...middleware, close: () => policies.close() }
}

function checkedPath(path: string): string {
  if (path.split('/').includes('..')) throw new InvalidOptions('the path must not contain ..')
  return path
}

function overriddenHints(annotations: Readonly<Record<string, unknown>> | undefined): Hints | undefined {
  if (annotations === undefined) return undefined
  return Object.fromEntries(HINTS.flatMap((hint) => (typeof annotations[hint] === 'boolean' ? [[hint, annotations[hint]]] : [])))
}
