import { tmpdir } from 'node:os'
import { createOutbound } from '@thv/http/outbound/outbound'
import { systemClock } from '@thv/kernel/clock'
import { ThvError } from '@thv/kernel/errors'
import {
  DEFAULT_FETCH_LIMITS,
  type FetchContext,
  type FetchLimits,
  type FetchResult,
  type FetchState,
} from '../../fetch/registry-handler.ts'
import type { GitSource, SourceConfig } from '../../fetch/source-config.ts'
import { createGitHandler, type GitHandlerOptions } from '../git-handler.ts'

export interface AttemptOptions extends GitHandlerOptions {
  readonly state?: FetchState
  readonly limits?: Partial<FetchLimits>
  readonly allowPrivateAddresses?: boolean
  readonly signal?: AbortSignal
  readonly warnings?: string[]
  readonly memo?: Map<string, unknown>
}

export function gitSource(git: GitSource, more: Partial<SourceConfig> = {}): SourceConfig {
  return { name: 'test', git, intervalMs: 60_000, ...more }
}

/** One attempt with a handler of its own. */
export async function attempt(git: GitSource, options: AttemptOptions = {}): Promise<FetchResult> {
  await using outbound = createOutbound()
  const { idleMs = 5_000, maxObjects = 10_000 } = options
  return await createGitHandler(outbound, { idleMs, maxObjects }).fetchRegistry(gitSource(git), fetchContext(options))
}

export function fetchContext(options: AttemptOptions = {}): FetchContext {
  return {
    signal: options.signal ?? new AbortController().signal,
    clock: systemClock,
    state: options.state,
    limits: { ...DEFAULT_FETCH_LIMITS, timeoutMs: 30_000, ...options.limits },
    memo: options.memo ?? new Map(),
    warn: (message) => void options.warnings?.push(message),
    allowPrivateAddresses: options.allowPrivateAddresses ?? true,
    tempDir: tmpdir(),
  }
}

/** The coded error that an attempt must end with. */
export async function failureOf(work: Promise<unknown>): Promise<ThvError> {
  const error = await work.then(
    () => undefined,
    (e: unknown) => e,
  )
  if (!(error instanceof ThvError)) throw new Error('there was no coded error', { cause: error })
  return error
}

export function namesOf(result: FetchResult): string[] {
  if (result.kind === 'unchanged') throw new Error('it is unchanged')
  return result.entries.map(({ name, version }) => `${name}@${version}`)
}

/** A document in upstream format with one server. */
export function registryFile(name: string, version = '1.0.0', padding?: Record<string, string>): string {
  const _meta = { 'com.example/padding': padding ?? {} }
  const server = { $schema: SCHEMA, name: `com.example/${name}`, description: `The server ${name}.`, version, remotes: [REMOTE], _meta }
  return JSON.stringify({ data: { servers: [server] } })
}

const SCHEMA = 'https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json'
const REMOTE = { type: 'streamable-http', url: 'https://example.com/mcp' }
