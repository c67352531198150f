import { setImmediate } from 'node:timers/promises'
import { Worker } from 'node:worker_threads'
import { type Clock, systemClock } from '@thv/kernel/clock'
import { withTimeLimit } from '@thv/kernel/deadline'
import { errorMessage, ThvError } from '@thv/kernel/errors'
import { runInTurns } from '@thv/kernel/steps'
import { AccessPolicies } from '../access/access-policies.ts'
import { compileParsed } from '../compile-policies.ts'
import { claimMappingOf } from './claim-mapping.ts'
import type { PolicyWorkerData } from './policy-worker.ts'
import type { PolicySource, PreparedPolicies, PreparedSet } from './prepare-policies.ts'

export interface LoadOptions {
  /** Name of the MCP server. */
  readonly server: string
  /** Module that calls `runPolicyWorker` when it finds itself in a worker. A bundle names its entry. */
  readonly entry?: URL | undefined
  readonly clock?: Clock
  readonly signal?: AbortSignal | undefined
}

/** Policies that can decide. */
export interface PolicyBundle {
  readonly hash: string
  readonly enforced: AccessPolicies
  /** Evaluated beside the enforced ones, never enforced. */
  readonly candidate: AccessPolicies | undefined
  /** Upstream provider whose claims they see; undefined: those of the client's own token. */
  readonly primaryUpstreamProvider?: string | undefined
}

export type LoadedPolicies =
  | { readonly ok: true; readonly bundle: PolicyBundle }
  | { readonly ok: false; readonly problems: readonly string[] }

/** A document that keeps a worker busy for longer is refused. */
const LOAD_MS = 60_000

/**
 * Reads, checks and compiles policies without stalling the thread: the engine runs in a worker that ends afterwards, and the evaluator is
 * put together in small pieces. Rejects when the worker fails, or with the signal's reason.
 */
export async function loadPolicies(source: PolicySource, options: LoadOptions): Promise<LoadedPolicies> {
  const { clock = systemClock, signal } = options
  const limit = { clock, timeoutMs: LOAD_MS, what: 'reading the policies', signals: [signal] }
  const prepared = await withTimeLimit(limit, (stop) => prepareInWorker(source, options.entry, stop))
  if (!prepared.ok) return prepared
  const problems: string[] = []
  const enforced = await compile(prepared.enforced, { ...options, path: 'cedar', problems })
  const candidate = prepared.candidate && (await compile(prepared.candidate, { ...options, path: 'candidate', problems }))
  if (enforced === undefined || problems.length > 0) return { ok: false, problems }
  const { primary_upstream_provider: primaryUpstreamProvider } = prepared.enforced.mapping
  return { ok: true, bundle: { hash: prepared.hash, enforced, candidate, primaryUpstreamProvider } }
}

interface CompileOptions extends LoadOptions {
  readonly path: string
  readonly problems: string[]
}

async function compile({ parsed, mapping }: PreparedSet, options: CompileOptions): Promise<AccessPolicies | undefined> {
  const { path, problems, server, signal } = options
  const compiled = await runInTurns(compileParsed(parsed), { pause: () => setImmediate(), signal })
  if (compiled.ok) return new AccessPolicies(compiled.set, { server, ...claimMappingOf(mapping) })
  problems.push(...compiled.problems.map((problem) => `${path}.${problem.path}: ${problem.message}`))
  return undefined
}

async function prepareInWorker(source: PolicySource, entry: URL | undefined, signal: AbortSignal): Promise<PreparedPolicies> {
  const data: PolicyWorkerData = { policies: source }
  const worker = new Worker(entry ?? new URL('policy-worker-main.ts', import.meta.url), { name: 'policies', workerData: data })
  try {
    return await new Promise<PreparedPolicies>((resolve, reject) => {
      const failed = (why: string) => reject(new ThvError('policy_engine_failed', `the policy engine failed: ${why}`))
      worker.once('message', resolve)
      worker.once('error', (error) => failed(errorMessage(error)))
      worker.once('exit', (code) => failed(`it ended with code ${code}`))
      signal.addEventListener('abort', () => reject(signal.reason), { once: true })
    })
  } finally {
    await worker.terminate()
  }
}
