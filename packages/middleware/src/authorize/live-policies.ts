import { open } from 'node:fs/promises'
import { type LoadedPolicies, type LoadOptions, loadPolicies, type PolicyBundle } from '@thv/authz/load/load-policies'
import { type Clock, systemClock } from '@thv/kernel/clock'
import { errorMessage } from '@thv/kernel/errors'
import { type FileWatch, watchFile } from '@thv/kernel/watch-file'
import type { AuthzConfig } from '@thv/runconfig/policy-config'
import type { Log } from '@thv/telemetry/log'
import { InvalidOptions } from '../pipeline/invalid-options.ts'
import type { PolicyHolder } from './authorize.ts'

export interface LivePoliciesOptions {
  /** A document that never changes, or the path of a file that may. */
  readonly source: { readonly config: AuthzConfig } | { readonly path: string }
  /** Name of the MCP server. */
  readonly server: string
  /** Module for the worker that reads policies. */
  readonly workerEntry?: URL | undefined
}

export interface LivePoliciesDeps {
  readonly log: Log
  readonly clock?: Clock | undefined
  /** After each load, the first one included. */
  readonly onLoaded?: ((event: PolicyLoad) => void) | undefined
}

/** `failed`: the set before stays in force. */
export type PolicyLoad =
  | { readonly outcome: 'ok'; readonly hash: string }
  | { readonly outcome: 'failed'; readonly problems: readonly string[] }

/** A request is authenticated with the claims of one provider and must not be judged by policies for those of another. */
const OTHER_PROVIDER = 'cedar.primary_upstream_provider changes with the next start'

/** Larger files are refused unread; a ConfigMap holds no more than 1 MiB. */
const MAX_BYTES = 4 << 20

/**
 * The policies in force. Those of a file follow the file: a document that works replaces the whole set between two requests, one that
 * does not changes nothing. Rejects with InvalidOptions when the first one does not work.
 */
export class LivePolicies implements PolicyHolder {
  #current: PolicyBundle
  /** The text that was loaded, or tried, last. */
  #text: string | undefined
  #watch: FileWatch | undefined
  readonly #observers: ((event: PolicyLoad) => void)[] = []
  readonly #closing = new AbortController()
  readonly #options: LivePoliciesOptions
  readonly #deps: LivePoliciesDeps

  private constructor(first: PolicyBundle, options: LivePoliciesOptions, deps: LivePoliciesDeps) {
    this.#current = first
    this.#options = options
    this.#deps = deps
  }

  get current(): PolicyBundle {
    return this.#current
  }

  static async open(options: LivePoliciesOptions, deps: LivePoliciesDeps): Promise<LivePolicies> {
    const { source } = options
    const read = 'path' in source ? await readText(source.path) : undefined
    if (read?.problem !== undefined) throw new InvalidOptions(read.problem)
    const loaded = await loadPolicies('config' in source ? source : { text: read?.text ?? '' }, loadOptions(options, deps))
    if (!loaded.ok) throw new InvalidOptions(loaded.problems.join('; '))
    const live = new LivePolicies(loaded.bundle, options, deps)
    deps.onLoaded?.({ outcome: 'ok', hash: loaded.bundle.hash })
    if ('path' in source) live.#follow(source.path, read?.text)
    return live
  }

  /** Takes over another document, whole or not at all. */
  async replace(config: AuthzConfig): Promise<PolicyLoad> {
    const loaded = await loadPolicies({ config }, this.#loadOptions()).catch(failure)
    return this.#settle('configuration', loaded)
  }

  /** Called after each further load. */
  observe(observer: (event: PolicyLoad) => void): void {
    this.#observers.push(observer)
  }

  async close(): Promise<void> {
    this.#closing.abort()
    await this.#watch?.[Symbol.asyncDispose]()
  }

  #follow(path: string, text: string | undefined): void {
    const { log, clock = systemClock } = this.#deps
    this.#text = text
    this.#watch = watchFile({
      path,
      clock,
      onChange: () => this.#reload(path),
      onError: (message) => log.warn('the policies are watched less closely', { path, error: message }),
    })
    this.#watch.trigger() // it may have changed while it was loaded
  }

  async #reload(path: string): Promise<void> {
    const { text, problem } = await readText(path)
    if (problem === undefined && text === this.#text) return
    this.#text = text
    const loading =
      problem === undefined ? loadPolicies({ text: text ?? '' }, this.#loadOptions()) : { ok: false as const, problems: [problem] }
    const loaded = await Promise.resolve(loading).catch(failure)
    if (!this.#closing.signal.aborted) this.#settle(path, loaded)
  }

  #loadOptions(): LoadOptions {
    return { ...loadOptions(this.#options, this.#deps), signal: this.#closing.signal }
  }

  #settle(path: string, loaded: LoadedPolicies): PolicyLoad {
    const { log } = this.#deps
    if (!loaded.ok) return this.#keep(path, loaded.problems)
    const { hash, primaryUpstreamProvider } = loaded.bundle
    if (primaryUpstreamProvider !== this.#current.primaryUpstreamProvider) return this.#keep(path, [OTHER_PROVIDER])
    this.#current = loaded.bundle
    log.info('policies replaced', { path, hash })
    return this.#tell({ outcome: 'ok', hash })
  }

  #keep(path: string, problems: readonly string[]): PolicyLoad {
    this.#deps.log.error('the policies are not replaced; those before stay in force', { path, problems: problems.join('; ') })
    return this.#tell({ outcome: 'failed', problems })
  }

  #tell(event: PolicyLoad): PolicyLoad {
    this.#deps.onLoaded?.(event)
    for (const observer of this.#observers) observer(event)
    return event
  }
}

function loadOptions({ server, workerEntry: entry }: LivePoliciesOptions, { clock = systemClock }: LivePoliciesDeps): LoadOptions {
  return { server, entry, clock }
}

async function readText(path: string): Promise<{ readonly text?: string; readonly problem?: string }> {
  try {
    await using file = await open(path)
    const { size } = await file.stat()
    if (size > MAX_BYTES) return { problem: `${path} is larger than ${MAX_BYTES >> 20} MiB` }
    return { text: await file.readFile('utf8') }
  } catch (error) {
    return { problem: `${path} cannot be read: ${errorMessage(error)}` }
  }
}

function failure(error: unknown): LoadedPolicies {
  return { ok: false, problems: [errorMessage(error)] }
}
