import { createHash } from 'node:crypto'
import { readBearer } from '@thv/auth/incoming/bearer'
import { HINTS, type Hints } from '@thv/authz/access/operation'
import { createBackoff } from '@thv/kernel/backoff'
import { mountedPath } from '@thv/kernel/mounted-path'
import type { RunConfig } from '@thv/runconfig/run-config'
import { runConfigError } from '@thv/runconfig/run-config-errors'
import { AUTHZ_PATH } from '@thv/runconfig/run-config-mount'
import { createAuthorize } from '../authorize/authorize.ts'
import { createDecisionMetrics, createLoadMetrics } from '../authorize/authorize-metrics.ts'
import { LivePolicies } from '../authorize/live-policies.ts'
import { type CredentialClass, ToolHints } from '../authorize/tool-hints.ts'
import type { MiddlewareDeps } from '../from-run-config.ts'
import { InvalidOptions } from '../pipeline/invalid-options.ts'
import type { Middleware } from '../pipeline/middleware.ts'
import type { RequestContext } from '../pipeline/request-context.ts'
import { compileToolNames } from '../tool-filter/tool-names.ts'
import { challengesOf } from './make-authenticate.ts'

export interface OpenPoliciesDeps extends Pick<MiddlewareDeps, 'log' | 'clock' | 'metrics'> {
  /** Main module of worker threads, which calls `runPolicyWorker` in them: a bundle names itself. */
  readonly workerEntry?: URL | undefined
  /**
   * The file is made together with the document, and changes some time after it: one that names another provider, or one where the document
   * names none, is waited for. Without it such a file is refused at once, and may be the only one that names a provider.
   */
  readonly awaited?: { readonly limitMs: number; readonly signal: AbortSignal } | undefined
}

/**
 * Loads the policies of a RunConfig, which takes a thread and a while. Undefined: it asks for none. Rejects with `run_config_invalid` when
 * they do not work: a proxy without them would stand open.
 */
export async function openPolicies(config: RunConfig, deps: OpenPoliciesDeps): Promise<LivePolicies | undefined> {
  const { authz_config: inline, authz_config_path: path, authz_primary_upstream_provider: copy, name: server } = config
  if (inline === undefined && path === undefined) return undefined
  const { log, clock, workerEntry } = deps
  const { loaded: onLoaded } = createLoadMetrics(deps.metrics)
  try {
    const source = inline === undefined ? { path: mountedPath(checkedPath(path ?? '')) } : { config: inline }
    const awaited = inline === undefined && path === AUTHZ_PATH ? deps.awaited : undefined
    const deadline = clock.monotonic() + (awaited?.limitMs ?? 0)
    const backoff = createBackoff({ baseMs: 250, maxMs: 5_000 })
    for (;;) {
      const live = await LivePolicies.open({ source, server, workerEntry }, { log, clock, onLoaded })
      const { primaryUpstreamProvider: named } = live.current
      if (named === copy || (copy === undefined && awaited === undefined)) return live
      await live.close()
      if (clock.monotonic() >= deadline)
        throw runConfigError('run_config_invalid', 'authz_primary_upstream_provider is not the provider that the policies name')
      if (backoff.failures === 0) log.info('the policies are not yet those of the run config; waiting', { path })
      await clock.sleep(Math.min(backoff.next(), deadline - clock.monotonic()), awaited?.signal)
    }
  } catch (error) {
    if (!(error instanceof InvalidOptions)) throw error
    throw runConfigError('run_config_invalid', `${inline === undefined ? 'authz_config_path' : 'authz_config'}: ${error.message}`)
  }
}

export function makeAuthorize(config: RunConfig, deps: MiddlewareDeps): Middleware | undefined {
  const { policies, metrics, toolSource, clock, log } = deps
  if (config.authz_config === undefined && config.authz_config_path === undefined) return undefined
  if (policies === undefined) throw new TypeError('the policies of the run config are not open')
  const { decided, differed } = createDecisionMetrics(metrics)
  const names = compileToolNames({ filter: config.tools_filter, overrides: config.tools_override })
  const middleware = createAuthorize({
    policies,
    visibleName: (name) => names.visibleOf(name) ?? name,
    hintOverrides: (name) => overriddenHints(names.overrides.get(name)?.annotations),
    originOf: toolSource?.originOf === undefined ? undefined : (name) => toolSource.originOf?.(name),
    isSearch: toolSource?.isSearch === undefined ? undefined : (name) => toolSource.isSearch?.(name) === true,
    toolHints: toolSource && new ToolHints({ source: toolSource, classOf: credentialClasses(config), clock, log }),
    insufficientScope: challengesOf(config)?.insufficientScope,
    onDecision: decided,
    onDifference: differed,
  })
  return {
    ...middleware,
    async close(signal) {
      await middleware.close?.(signal)
      await policies.close()
    },
  }
}

/** Callers whose requests reach the backend with the same credentials get the same list of tools. */
function credentialClasses(config: RunConfig): (context: RequestContext) => CredentialClass {
  if (config.token_exchange_config !== undefined)
    return ({ caller, exchange }) => {
      if (caller.token !== undefined) return { key: caller.principal, caller, authorization: undefined }
      // Nothing authenticates here: the bearer is exchanged as it comes.
      const { authorization } = exchange.headers
      const bearer = typeof authorization === 'string' ? readBearer(authorization) : 'missing'
      if (typeof bearer !== 'object') return STATIC
      return { key: hashed(bearer.token), caller: { ...caller, token: bearer.token }, authorization: undefined }
    }
  const isReplaced = config.header_injection_config !== undefined || config.remote_auth_config !== undefined
  const passesOn = !isReplaced && (config.oidc_config === undefined || config.oidc_config.forward_token)
  if (!passesOn) return () => STATIC
  return ({ exchange }) => {
    const { authorization } = exchange.headers
    return typeof authorization === 'string' ? { key: hashed(authorization), caller: undefined, authorization } : STATIC
  }
}

const STATIC: CredentialClass = { key: '', caller: undefined, authorization: undefined }

/** No token is kept as a key. */
function hashed(text: unknown): string {
  return createHash('sha256').update(String(text)).digest('base64url')
}

function checkedPath(path: string): string {
  if (path.split('/').includes('..')) throw new InvalidOptions('the path must not contain ..')
  return path
}

function overriddenHints(annotations: Readonly<Record<string, unknown>> | undefined): Hints | undefined {
  if (annotations === undefined) return undefined
  return Object.fromEntries(HINTS.flatMap((hint) => (typeof annotations[hint] === 'boolean' ? [[hint, annotations[hint]]] : [])))
}
